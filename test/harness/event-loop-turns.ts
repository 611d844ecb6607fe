/** Measures the processor time of event loop turns, which, unlike real time, does not include other programs. */

/** The processor time of the function, in milliseconds. */
export function processorTimeOf(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** Watches all turns. The returned function stops watching and returns the longest turn. */
export function watchTurns(): () => number {
  let longest = 0;
  let before = process.threadCpuUsage();
  let isOver = false;
  const next = () => {
    const { user, system } = process.threadCpuUsage(before);
    longest = Math.max(longest, (user + system) / 1000);
    before = process.threadCpuUsage();
    if (!isOver) setImmediate(next);
  };
  setImmediate(next);
  return () => {
    isOver = true;
    return longest;
  };
}
