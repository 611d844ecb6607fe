/** The file of the master key: made once, for its owner only, and never overwritten, even by concurrent attempts. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { OperatorError } from '../../../src/base/operator-error.ts';
import type { MasterKey } from '../../../src/crypto/secrets/master-key.ts';
import { createMasterKey, readMasterKey } from '../../../src/crypto/secrets/master-key-file.ts';
import { race, sourceUrl } from '../../harness/processes/racing-processes.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

const world = new TestWorld();

function created(path: string): MasterKey {
  const key = createMasterKey(path, world);
  assert.ok(key);
  return key;
}

/** Asserts that an operator is told something like `message`, and what to do. */
function assertTold(work: () => unknown, message: RegExp): void {
  assert.throws(work, (error) => {
    assert(error instanceof OperatorError);
    assert.match(error.message, message);
    assert(error.hint);
    return true;
  });
}

test('a new file has 32 bytes that only its owner may read, and nothing else is left beside it', (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'master.key');
  const before = process.umask(0);
  t.after(() => process.umask(before));
  const key = created(path);
  const { mode, size } = statSync(path);
  assert.equal(mode & 0o777, 0o600);
  assert.equal(size, 32);
  assert.deepEqual(readdirSync(dir), ['master.key']);
  assert.deepEqual(readMasterKey(path)?.id, key.id);
});

test('every new file has a different key', (t) => {
  const dir = tempDir(t);
  const keys = ['a', 'b', 'c'].map((name) => created(join(dir, name)).name);
  assert.equal(new Set(keys).size, 3);
});

test('readMasterKey returns undefined for a missing file', (t) => {
  assert.equal(readMasterKey(join(tempDir(t), 'master.key')), undefined);
});

test('createMasterKey uses an existing file and does not overwrite it', (t) => {
  const path = join(tempDir(t), 'master.key');
  const first = created(path);
  const bytes = readFileSync(path);
  assert.deepEqual(created(path).id, first.id);
  assert.deepEqual(readFileSync(path), bytes);
});

for (const length of [0, 1, 31, 33, 64]) {
  test(`a file of ${length} bytes is rejected and left unchanged`, (t) => {
    const dir = tempDir(t);
    const path = join(dir, 'master.key');
    const bytes = Buffer.alloc(length, 7);
    writeFileSync(path, bytes);
    assertTold(() => readMasterKey(path), new RegExp(`it has ${length} bytes instead of 32`));
    assertTold(() => createMasterKey(path, world), new RegExp(`it has ${length} bytes`));
    assert.deepEqual(readFileSync(path), bytes);
    assert.deepEqual(readdirSync(dir), ['master.key']);
  });
}

test('createMasterKey does not follow a dangling symlink', (t) => {
  const dir = tempDir(t);
  symlinkSync(join(dir, 'elsewhere'), join(dir, 'master.key'));
  assert.throws(() => createMasterKey(join(dir, 'master.key'), world), OperatorError);
  assert.deepEqual(readdirSync(dir), ['master.key']);
});

test('a directory in place of the key file is reported with an error message and a hint', (t) => {
  const path = join(tempDir(t), 'master.key');
  mkdirSync(path);
  assertTold(() => readMasterKey(path), /cannot read/);
});

test('an unusable parent directory is reported with an error message and a hint', (t) => {
  const file = join(tempDir(t), 'file');
  writeFileSync(file, '');
  assertTold(() => createMasterKey(join(file, 'master.key'), world), /cannot create/);
  assertTold(() => createMasterKey(join(tempDir(t), 'missing', 'master.key'), world), /cannot create/);
  assertTold(() => readMasterKey(join(file, 'master.key')), /cannot read/);
});

const racer = `
  const { createMasterKey } = await import(process.argv[1]);
  const { realWorld } = await import(process.argv[2]);
  await start();
  process.stdout.write(createMasterKey(process.argv[3], realWorld).id.toString('hex'));
`;

test('processes that create the same key file concurrently all get the same key', async (t) => {
  const path = join(tempDir(t), 'master.key');
  const modules = [sourceUrl('crypto/secrets/master-key-file.ts'), sourceUrl('base/world.ts')];
  const said = await race(t, 4, racer, [...modules, path]);
  const id = readMasterKey(path)?.id.toString('hex');
  assert.deepEqual(new Set(said), new Set([id]));
});

test('a partial write of a replacement fails and leaves the old key file in place', (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'master.key');
  const first = created(path);
  const script = `
    import { realWorld } from '${sourceUrl('base/world.ts')}';
    import { Secret } from '${sourceUrl('base/secret.ts')}';
    import { writeKeyFile } from '${sourceUrl('crypto/secrets/master-key-file.ts')}';
    writeKeyFile(realWorld, process.argv[1], new Secret(Buffer.alloc(3000, 'x')), 'replace');
  `;
  // One block, which is 512 bytes or 1,024.
  const shell = 'ulimit -f 1 && exec "$@"';
  const words = [process.execPath, '--input-type=module', '-e', script, path];
  const { status, stderr } = spawnSync('sh', ['-c', shell, 'sh', ...words], { encoding: 'utf8' });
  assert.equal(status, 1, stderr);
  assert.match(stderr, /cannot create the master key file .*: file too large/);
  assert.deepEqual(readMasterKey(path)?.id, first.id);
  assert.deepEqual(readdirSync(dir), ['master.key'], 'nothing is left beside it');
});

test('drafts left by a process killed a day ago are removed, and nothing else', (t) => {
  const dir = tempDir(t);
  const names = ['.master.key.0123456789abcdef', '.master.key.fedcba9876543210', '.master.key.x', 'other'];
  const dayAgo = world.now() / 1000 - 86_401;
  for (const name of names) {
    writeFileSync(join(dir, name), 'x');
    utimesSync(join(dir, name), dayAgo, dayAgo);
  }
  utimesSync(join(dir, '.master.key.fedcba9876543210'), dayAgo, dayAgo + 60);
  createMasterKey(join(dir, 'master.key'), world);
  assert.deepEqual(readdirSync(dir), [...names.slice(1), 'master.key'].sort());
});
