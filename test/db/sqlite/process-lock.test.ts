/**
 * Locks of processes: held while the process lives, however it ends, and no proof of death where nothing can be read.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { abandonedLocks, removeLocks, takeProcessLock } from '../../../src/db/sqlite/process-lock.ts';
import { sourceUrl } from '../../harness/processes/racing-processes.ts';
import { tempDir } from '../../harness/temp-dir.ts';

/** A process that has taken the lock. It is killed when the test ends. */
async function holder(t: TestContext, directory: string, name: string) {
  const script = `
    import { takeProcessLock } from '${sourceUrl('db/sqlite/process-lock.ts')}';
    globalThis.lock = takeProcessLock(process.argv[1], process.argv[2]);
    process.stdout.write('locked');
    setInterval(() => undefined, 1000);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, directory, name], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

test('the lock of another process is held until it ends, even while it is stopped, and abandoned after kill -9', async (t) => {
  const directory = tempDir(t);
  const child = await holder(t, directory, 'aa');
  assert.deepEqual(abandonedLocks(directory), []);
  child.kill('SIGSTOP');
  assert.deepEqual(abandonedLocks(directory), []);
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.deepEqual(abandonedLocks(directory), ['aa']);
  removeLocks(directory, ['aa', 'missing']);
  assert.deepEqual(readdirSync(directory), []);
});

test('a lock of this process is held until it is released, which removes its file', (t) => {
  const directory = tempDir(t);
  const lock = takeProcessLock(directory, 'aa');
  assert.deepEqual(readdirSync(directory), ['vault.lock-aa']);
  assert.equal(statSync(join(directory, 'vault.lock-aa')).mode & 0o777, 0o600);
  assert.deepEqual(abandonedLocks(directory), []);
  assert.throws(() => takeProcessLock(directory, 'aa'));
  assert.deepEqual(abandonedLocks(directory), []);
  lock.release();
  assert.deepEqual(readdirSync(directory), []);
  lock.release();
});

test('files that are not readable locks are not reported as abandoned', (t) => {
  const directory = tempDir(t);
  mkdirSync(join(directory, 'vault.lock-aa'));
  writeFileSync(join(directory, 'vault.lock-bb'), 'not an empty file');
  symlinkSync('missing', join(directory, 'vault.lock-cc'));
  // A process that opens a pipe waits for its other end.
  assert.equal(spawnSync('mkfifo', [join(directory, 'vault.lock-dd')]).status, 0);
  writeFileSync(join(directory, 'vault.other'), '');
  assert.deepEqual(abandonedLocks(directory), []);
  assert.deepEqual(abandonedLocks(join(directory, 'missing')), []);
  assert.throws(() => takeProcessLock(join(directory, 'missing'), 'aa'));
  // A directory cannot be removed as a file is.
  removeLocks(directory, ['aa']);
});
