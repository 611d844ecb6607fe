/** Processes that a test or a script starts end with it, also when it is killed or dies of an error that nothing caught. */
import type { ChildProcess } from 'node:child_process';

const children = new Set<ChildProcess>();
let isWatching = false;

/** Kills the process, should it still run when this one exits. Returns it. */
export function endWithThisProcess<T extends ChildProcess>(child: T): T {
  if (!isWatching) watchOwnEnd();
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

function watchOwnEnd(): void {
  isWatching = true;
  process.once('exit', () => {
    for (const child of children) child.kill('SIGKILL');
  });
  // By default these end a process without its exit handlers.
  const signals = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
  for (const [signal, number] of Object.entries(signals))
    process.once(signal, () => process.exit(128 + number));
}
