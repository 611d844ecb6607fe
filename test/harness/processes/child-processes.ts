/**
 * Importing this file ties the child processes of a test or script to it: they end with it, also when it is killed,
 * hangs until its time limit or dies of an uncaught error. A test process that does not end after its last test fails.
 * `npm test` preloads it into every test process.
 */
import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { after } from 'node:test';
import { isMainThread } from 'node:worker_threads';

// Most of what a test process imports is what the others import: compiling it takes a third of their time.
enableCompileCache(join(import.meta.dirname, '..', '..', '..', 'node_modules', '.cache', 'compiled'));

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

// A process with something open does not end by itself: the run would wait for it without end, and nothing would say
// why. Not in its threads and child processes: what uses node:test opens the report, and would begin it anew.
if (isMainThread && process.argv[1]?.endsWith('.test.ts') === true)
  after(() => {
    setTimeout(() => {
      const file = process.argv[1] ?? '';
      const open = process.getActiveResourcesInfo().join(', ');
      process.stderr.write(`${file} has not ended 10 s after its last test; open: ${open}\n`);
      process.exit(1);
    }, 10_000).unref();
  });
