/** Locks of processes: held while the process lives, however it ends, and no proof of death where nothing can be read. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { isAbandoned, removeOldLocks, takeProcessLock } from '../../../src/db/sqlite/process-lock.ts';
import { sourceUrl } from '../../harness/racing-processes.ts';
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
  assert.equal(isAbandoned(directory, 'aa'), false);
  child.kill('SIGSTOP');
  assert.equal(isAbandoned(directory, 'aa'), false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(isAbandoned(directory, 'aa'), true);
  assert.deepEqual(readdirSync(directory), ['vault.lock-aa']);
});

test('a lock of this process is held until it is released, which removes its file', (t) => {
  const directory = tempDir(t);
  const lock = takeProcessLock(directory, 'aa');
  assert.deepEqual(readdirSync(directory), ['vault.lock-aa']);
  assert.equal(isAbandoned(directory, 'aa'), false);
  assert.throws(() => takeProcessLock(directory, 'aa'));
  assert.equal(isAbandoned(directory, 'aa'), false);
  lock.release();
  assert.deepEqual(readdirSync(directory), []);
  lock.release();
});

test('what cannot be read as a lock says nothing about its process', (t) => {
  const directory = tempDir(t);
  assert.equal(isAbandoned(directory, 'aa'), false, 'missing');
  mkdirSync(join(directory, 'vault.lock-bb'));
  assert.equal(isAbandoned(directory, 'bb'), false, 'a directory');
  writeFileSync(join(directory, 'vault.lock-cc'), 'not an empty file');
  assert.equal(isAbandoned(directory, 'cc'), false, 'other content');
  assert.equal(isAbandoned(join(directory, 'missing'), 'aa'), false, 'no directory');
  assert.throws(() => takeProcessLock(join(directory, 'missing'), 'aa'));
});

test('only abandoned locks are removed, and only after a day', async (t) => {
  const directory = tempDir(t);
  const now = Date.now();
  const aged = (name: string, age: number) => {
    const at = new Date(now - age);
    utimesSync(join(directory, name), at, at);
  };
  const child = await holder(t, directory, 'held');
  for (const name of ['old', 'new']) writeFileSync(join(directory, `vault.lock-${name}`), '');
  writeFileSync(join(directory, 'vault.other'), '');
  for (const name of ['vault.lock-held', 'vault.lock-old', 'vault.other']) aged(name, day + 1000);
  aged('vault.lock-new', day - 60_000);
  removeOldLocks(directory, now);
  assert.deepEqual(readdirSync(directory).toSorted(), ['vault.lock-held', 'vault.lock-new', 'vault.other']);
  assert.equal(isAbandoned(directory, 'held'), false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  removeOldLocks(directory, now);
  assert.deepEqual(readdirSync(directory).toSorted(), ['vault.lock-new', 'vault.other']);
  rmSync(directory, { recursive: true });
});
