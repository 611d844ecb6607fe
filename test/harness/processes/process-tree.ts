/**
 * Signals to processes together with their descendants, which may have process groups of their own, as those of
 * PostgreSQL.
 */
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Stops the processes and all their descendants where they are; returns them, parents first. Asks for descendants until
 * no new ones appear, because a process may start another until it is stopped itself.
 */
export function stopTrees(roots: readonly number[]): number[] {
  const stopped: number[] = [];
  for (let found = [...roots]; found.length > 0; found = descendants(roots, stopped)) {
    for (const pid of found) signal(pid, 'SIGSTOP');
    stopped.push(...found);
  }
  return stopped;
}

/** Kills the processes and all their descendants; returns them. They need a moment to end; see `untilEnded`. */
export function killTrees(roots: readonly number[]): number[] {
  // Stopped first, so that none notices the end of another.
  const stopped = stopTrees(roots);
  for (const pid of stopped) signal(pid, 'SIGKILL');
  return stopped;
}

/**
 * Waits for the end of killed processes: their files and ports are free then, even if their parents have not noticed.
 */
export async function untilEnded(pids: readonly number[]): Promise<void> {
  while (living().some(([pid]) => pids.includes(pid))) await sleep(5);
}

/** Sends a signal; does nothing if the process has ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Descendants that are not in `known`. */
function descendants(roots: readonly number[], known: readonly number[]): number[] {
  const processes = living();
  const family = new Set(roots);
  for (let size = 0; size < family.size; ) {
    size = family.size;
    for (const [pid, parent] of processes) if (family.has(parent)) family.add(pid);
  }
  return [...family].filter((pid) => !known.includes(pid) && !roots.includes(pid));
}

/** Processes with their parents. */
function living(): [pid: number, parent: number][] {
  const rows = execFileSync('ps', ['-e', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' }).trim().split('\n');
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, , state]) => !state?.startsWith('Z'))
    .map(([pid, parent]) => [Number(pid), Number(parent)]);
}
