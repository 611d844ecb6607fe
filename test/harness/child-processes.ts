/**
 * Preloaded into each test process (`--import`): the child processes of a test end with it, also when the test fails or hangs
 * before it has registered its own cleanup.
 */
import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';

const running = new Set<ChildProcess>();

subscribe('child_process', (message) => {
  const child = (message as { process: ChildProcess }).process;
  running.add(child);
  child.once('exit', () => running.delete(child));
});

process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
// Node's test runner ends a test file that takes too long this way; without a handler no `exit` follows.
process.once('SIGTERM', () => process.exit(143));
