/** The keys that a process finds beside its key file, even while they are moved. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs, { writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { Keyring, keyFilesBeside, nextKeyPath } from '../../../src/crypto/secrets/keyring.ts';
import { MasterKey } from '../../../src/crypto/secrets/master-key.ts';
import { sourceUrl } from '../../harness/processes/racing-processes.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const someKey = (fill: number) => new MasterKey(new Secret(Buffer.alloc(32, fill)));

for (const call of ['readdirSync', 'readFileSync'] as const) {
  test(`the next key is found if it is renamed to the key file right after the first ${call}`, (t) => {
    const path = join(tempDir(t), 'master.key');
    writeFileSync(path, Buffer.alloc(32, 1));
    writeFileSync(nextKeyPath(path), Buffer.alloc(32, 2));
    const original = fs[call] as (...args: unknown[]) => unknown;
    t.mock.method(fs, call, (...args: unknown[]) => {
      const answer = original(...args);
      if (fs.existsSync(nextKeyPath(path))) fs.renameSync(nextKeyPath(path), path);
      return answer;
    });
    syncBuiltinESMExports();
    try {
      const keyring = new Keyring(path, someKey(1));
      assert.equal(keyring.find(someKey(2).name)?.name, someKey(2).name);
    } finally {
      t.mock.restoreAll();
      syncBuiltinESMExports();
    }
    assert.equal(fs.existsSync(nextKeyPath(path)), false);
  });
}

test('a key from standard input has no neighboring key files and is not read again', () => {
  const script = `
    import { Keyring, keyFilesBeside } from '${sourceUrl('crypto/secrets/keyring.ts')}';
    const [{ key }] = keyFilesBeside('-');
    const keyring = new Keyring('-', key);
    console.log(keyring.find(key.name) === key, keyring.find('${someKey(2).name}'));
  `;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    input: Buffer.alloc(32, 1),
    encoding: 'utf8',
  });
  assert.equal(stdout, 'true undefined\n', stderr);
});

test('keyFilesBeside skips files that are not keys or have other names', (t) => {
  const path = join(tempDir(t), 'master.key');
  const names = ['', '.next', '.0123456789abcdef', '.before-restore-1', '.0123456789ABCDEF'];
  for (const [index, name] of names.entries()) writeFileSync(path + name, Buffer.alloc(32, index + 1));
  writeFileSync(`${path}.fedcba9876543210`, 'no key');
  assert.deepEqual(
    keyFilesBeside(path).map((file) => file.path),
    [path, `${path}.0123456789abcdef`, `${path}.next`],
  );
});
