/**
 * Where a new vault may be created: on a new machine, also with a key that was provisioned, and never where one was
 * lost.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openVault } from '../../../src/cli/runtime/open-vault.ts';
import { readSettings } from '../../../src/cli/settings/settings.ts';
import { ofFiles } from '../../harness/database/tested-engine.ts';
import { namesIn } from '../../harness/processes/vault-files.ts';
import { runInside } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

const key = Buffer.alloc(32, 7);

function directory(t: TestContext): string {
  const path = join(tempDir(t), 'data');
  mkdirSync(path, { mode: 0o700 });
  return path;
}

const create = (data: string, ...more: string[]) =>
  runInside(['certificate', 'create', '--name=a', '--domain=a.test', '--data-dir', data, ...more]);

test('commands fail when the default master key exists without its database, unless --master-key-file is given', async (t) => {
  const data = directory(t);
  const file = join(data, 'master.key');
  writeFileSync(file, key, { mode: 0o600 });
  const refusal =
    `vault: the database ${data}/vault.db is missing, but its master key ${file} exists\n` +
    `  Put vault.db back, or restore a backup: vault restore FILE --replace --data-dir ${data}\n` +
    `  To start a new vault instead, move the old files away: mv ${data} ${data}.old\n` +
    '  Nothing was changed.\n' +
    `  To create a new vault with this key, name it: --master-key-file ${file}\n`;
  assert.deepEqual(await create(data), { code: 1, stdout: '', stderr: refusal });
  for (const words of [
    ['certificate', 'list'],
    ['backup', join(data, '..', 'x.backup')],
    ['master-key', 'status'],
  ]) {
    assert.deepEqual(await runInside([...words, '--data-dir', data]), {
      code: 1,
      stdout: '',
      stderr: refusal,
    });
  }
  assert.deepEqual(readdirSync(data), ['master.key']);
  const { code, stderr } = await create(data, '--master-key-file', file);
  assert.equal(code, 0, stderr);
  assert.deepEqual(readFileSync(file), key, 'it is the key of the new vault');
  assert.deepEqual(await namesIn(data), ['a']);
});

test('a master key provisioned by a setting or as a credential creates a new vault', async (t) => {
  const elsewhere = directory(t);
  writeFileSync(join(elsewhere, 'master.key'), key, { mode: 0o600 });
  const named = directory(t);
  const { code, stderr } = await create(named, '--master-key-file', join(elsewhere, 'master.key'));
  assert.equal(code, 0, stderr);
  const data = directory(t);
  const settings = await readSettings({ 'data-dir': data }, { CREDENTIALS_DIRECTORY: elsewhere });
  const { close, isNew } = await openVault(settings, new TestWorld(), 'create');
  await close();
  assert.ok(isNew);
  assert.equal(existsSync(join(data, 'master.key')), false);
});

test('creation that was killed between key and database succeeds on the next run and leaves no temporary files', async (t) => {
  const data = directory(t);
  writeFileSync(join(data, 'master.key'), key, { mode: 0o600 });
  writeFileSync(join(data, 'vault.creating'), '', { mode: 0o600 });
  writeFileSync(join(data, 'vault.db.creating-0123456789abcdef'), 'half', { mode: 0o600 });
  const { code, stderr } = await create(data);
  assert.equal(code, 0, stderr);
  assert.deepEqual(readdirSync(data).sort(), ['master.key', 'vault.db']);
});

test('a mark without its database blocks creation; an empty mark and an empty database do not', async (t) => {
  const data = directory(t);
  writeFileSync(join(data, 'vault.mark'), '{}', { mode: 0o600 });
  assert.match((await create(data)).stderr, /vault\.db is missing, but its mark \S+ exists\n/);
  writeFileSync(join(data, 'vault.mark'), '');
  writeFileSync(join(data, 'vault.db'), '', { mode: 0o600 });
  assert.equal((await create(data)).code, 0);
});

test(
  'the database file opens without its WAL right after creation and after the vault is closed',
  ofFiles('it is copied without its log'),
  async (t) => {
    const { dataDir, close } = await testVault(t);
    const copy = directory(t);
    for (const name of ['vault.db', 'master.key']) {
      writeFileSync(join(copy, name), readFileSync(join(dataDir, name)), { mode: 0o600 });
    }
    const issuers = await runInside(['issuer', 'list', '--data-dir', copy]);
    assert.equal(issuers.code, 0, issuers.stderr);
    await close();
    rmSync(join(dataDir, 'vault.db-wal'), { force: true });
    assert.deepEqual(await namesIn(dataDir), []);
  },
);
