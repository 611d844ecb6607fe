/**
 * Importing this file ties the child processes of a test or script to it: they end with it, also when it is killed, hangs until
 * its time limit or dies of an uncaught error. `npm test` preloads it into every test process.
 */
import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';

const running = new Set<ChildProcess>();

subscribe('child_process', (message) => {
  const { process: child } = message as { process: ChildProcess };
  running.add(child);
  child.once('exit', () => running.delete(child));
});

process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
// By default these end a process without its exit handlers.
const signals = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
for (const [signal, number] of Object.entries(signals))
  process.once(signal, () => process.exit(128 + number));
