/**
 * Measures the processor time of event loop turns. Unlike real time it does not include other programs, but it includes
 * the compiler, the collector of garbage and what a virtual machine waits for its processor.
 */
import assert from 'node:assert/strict';

const maxTries = 8;

const aMebibyteOfNumbers = `[${'1,'.repeat(524_287)}1]`;
/** Milliseconds that parsing these numbers takes on the machine for which the limits are stated. */
const defaultParse = 4;

/** A limit is never multiplied by more: work that takes five times its limit always exceeds it. */
const largestSlowness = 4;

/**
 * How many times slower than that machine this one is at the moment, from the time of a fixed piece of work; 1 to 4.
 */
function slowness(): number {
  const parses = 5;
  const took = processorTimeOf(() => {
    for (let count = 0; count < parses; count += 1) JSON.parse(aMebibyteOfNumbers);
  });
  return Math.min(largestSlowness, Math.max(1, took / parses / defaultParse));
}

/**
 * Fails if each of several measurements of the same work exceeds the limit in milliseconds: what the work itself takes
 * is in all of them. After the first, the limit is multiplied by how slow the machine is at the moment.
 */
export async function assertBrief(
  what: string,
  limit: number,
  measure: () => number | Promise<number>,
): Promise<void> {
  for (let most = limit, tries = 1; ; tries += 1) {
    const took = await measure();
    if (took < most) return;
    assert(tries < maxTries, `${what} took ${took} ms of processor time, with a limit of ${most} ms`);
    most = limit * slowness();
  }
}

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
