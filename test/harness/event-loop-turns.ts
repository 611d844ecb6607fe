/** How much processor time turns of the event loop take. Other programs on the machine do not count, unlike with a clock. */

/** Milliseconds of processor time that the function took. */
export function processorTimeOf(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** Watches all turns until the function that it returns is called, which says how long the longest was. */
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
