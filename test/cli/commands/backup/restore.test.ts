/**
 * `vault restore`: what was backed up serves again, elsewhere or in place, and nothing is touched before all is
 * checked.
 */
import assert from 'node:assert/strict';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before as beforeAll, type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import BetterSqlite3 from 'better-sqlite3';
import { readMasterKey } from '../../../../src/crypto/secrets/master-key-file.ts';
import { examineCopy } from '../../../../src/db/sqlite/backup-copy.ts';
import { sealDraft } from '../../../../src/domain/backup/backup-file.ts';
import type { Manifest } from '../../../../src/domain/backup/backup-manifest.ts';
import { backupPassphrase, makeBackup } from '../../../harness/database/backup-fixtures.ts';
import { visit } from '../../../harness/http/https-client.ts';
import { commandLine } from '../../../harness/processes/command-line.ts';
import { serve, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';
import { testVault } from '../../../harness/test-vault.ts';
import { TestWorld } from '../../../harness/test-world.ts';

const undone: (() => unknown)[] = [];
/** A directory with a vault, its backup and the passphrase of the backup, and an API key of the vault. */
let original = { dir: '', key: '' };

beforeAll(async () => {
  const line = commandLine({ after: (undo) => undone.push(undo as () => unknown) });
  const dir = dirname(line.data);
  const phrase = line.file(`${backupPassphrase}\n`, 'phrase');
  await line.done('certificate', 'create', '--name=web', '--domain=a.test');
  const scopes = ['--scope=private_keys:read', '--scope=certificates:read'];
  const created = await line.done('api-key', 'create', '--name=k', ...scopes, '--certificate=web');
  await line.done('backup', join(dir, 'x.backup'), '--with-master-key', '--passphrase-file', phrase);
  original = { dir, key: created.stdout.trim() };
});

after(() => {
  for (const undo of undone) undo();
});

/** A copy of a vault with a certificate, a key that may read it, and a backup that brings its master key along. */
function backedUp(t: TestContext) {
  const line = commandLine(t);
  const dir = dirname(line.data);
  cpSync(original.dir, dir, { recursive: true });
  const [backup, phrase] = [join(dir, 'x.backup'), join(dir, 'phrase')];
  const elsewhere = join(dir, 'elsewhere');
  const restoreTo = (data: string, ...args: string[]) =>
    vault(['restore', backup, '--data-dir', data, ...args]);
  return { ...line, dir, backup, phrase, elsewhere, key: original.key, restoreTo };
}

/** Everything that a client gets of `web`: status, tag and body of each file. */
async function served(t: TestContext, data: string, key: string): Promise<string[]> {
  const server = await serve(t, data);
  const files = ['certificate.crt', 'chain.crt', 'fullchain.crt', 'private.key'];
  const answers = files.map(async (file) => {
    const headers = { Authorization: `Bearer ${key}` };
    const response = await fetch(`${server.url}/api/v1/certificates/web/${file}`, { headers });
    return `${response.status} ${response.headers.get('etag')} ${await response.text()}`;
  });
  const all = await Promise.all(answers);
  await server.end();
  return all;
}

/** The names and bytes of a folder. */
const picture = (dir: string) =>
  readdirSync(dir)
    .sort()
    .map((name) => `${name} ${readFileSync(join(dir, name)).toString('base64')}`);

test('a vault restored elsewhere serves the same files with the same ETags to the same API key', async (t) => {
  const { data, key, restoreTo, elsewhere, phrase, backup } = backedUp(t);
  const before = await served(t, data, key);
  assert.match(before[3] ?? '', /^200 "\S+" -----BEGIN PRIVATE KEY-----/);
  const { code, stderr, stdout } = await restoreTo(elsewhere, '--passphrase-file', phrase);
  assert.deepEqual([code, stdout], [0, ''], stderr);
  assert.match(stderr, new RegExp(`^${backup}: 1 certificate, 1 version, 1 API key, as of .*Z\n`));
  assert.match(
    stderr,
    new RegExp(`Restored the vault into ${elsewhere}, with its master key in ${elsewhere}/master\\.key\\.\n`),
  );
  assert.match(stderr, /API keys and ACME clients revoked since then are valid again/);
  assert.deepEqual(readdirSync(elsewhere).sort(), ['master.key', 'vault.db']);
  for (const name of ['master.key', 'vault.db'])
    assert.equal(statSync(join(elsewhere, name)).mode & 0o777, 0o600);
  assert.deepEqual(readFileSync(join(elsewhere, 'master.key')), readFileSync(join(data, 'master.key')));
  assert.deepEqual(await served(t, elsewhere, key), before);
});

test('a key that is bound to a client certificate is bound in the restored vault, too', async (t) => {
  const line = commandLine(t);
  const dir = dirname(line.data);
  await line.done('certificate', 'create', '--name=web', '--domain=127.0.0.1');
  await line.done('certificate', 'create', '--name=host', '--domain=host.test', '--usage=client');
  const scope = ['--scope=private_keys:read', '--certificate=web', '--client-certificate=host'];
  const { stdout } = await line.done('api-key', 'create', '--name=bound', ...scope);
  await line.done('certificate', 'export', '--name=host', '--out', join(dir, 'host'));
  const phrase = ['--passphrase-file', line.file(`${backupPassphrase}\n`, 'phrase')];
  await line.done('backup', join(dir, 'x.backup'), '--with-master-key', ...phrase);
  const elsewhere = join(dir, 'elsewhere');
  const restored = await vault(['restore', join(dir, 'x.backup'), '--data-dir', elsewhere, ...phrase]);
  assert.equal(restored.code, 0, restored.stderr);
  const server = await serve(t, elsewhere, { args: ['--tls-certificate', 'web'] });
  const status = async (pair: { readonly cert?: string; readonly key?: string }) => {
    const headers = { Authorization: `Bearer ${stdout.trim()}` };
    return (await visit(`${server.url}/api/v1/certificates/web/private.key`, { ...pair, headers })).status;
  };
  const read = (file: string) => readFileSync(join(dir, 'host', file), 'utf8');
  assert.equal(await status({}), 403);
  assert.equal(await status({ cert: read('fullchain.crt'), key: read('private.key') }), 200);
});

test('a restored master key file is encrypted when --master-key-passphrase-file is set', async (t) => {
  const { restoreTo, elsewhere, phrase, file } = backedUp(t);
  const own = file('other words in another row\n');
  chmodSync(own, 0o600);
  const configured = ['--master-key-passphrase-file', own];
  const { code, stderr } = await restoreTo(elsewhere, '--passphrase-file', phrase, ...configured);
  assert.equal(code, 0, stderr);
  assert.match(
    readFileSync(join(elsewhere, 'master.key'), 'utf8'),
    /^\{\n "certificate_vault_master_key": 1,/,
  );
  const listed = await vault(['certificate', 'list', '--data-dir', elsewhere, ...configured]);
  assert.equal(listed.code, 0, listed.stderr);
});

test('the restored vault records the restore and the time of its backup', async (t) => {
  const { restoreTo, elsewhere, phrase } = backedUp(t);
  await restoreTo(elsewhere, '--passphrase-file', phrase);
  const database = new BetterSqlite3(join(elsewhere, 'vault.db'), { readonly: true });
  const event = database
    .prepare("select actor, resource, detail from audit_events where action = 'backup.restore'")
    .get() as Record<string, string>;
  const last = database
    .prepare("select value from settings where key = 'last-backup-at'")
    .pluck()
    .get() as number;
  database.close();
  assert.deepEqual([event.actor, event.resource], ['local-cli', 'backup:x.backup']);
  const detail = JSON.parse(event.detail ?? '') as { created_at: string; vault_version: string };
  assert.equal(Date.parse(detail.created_at), last);
});

test('an existing vault is left unchanged; --replace keeps a copy of it', async (t) => {
  const { run, data, done, refused, backup } = backedUp(t);
  await done('certificate', 'create', '--name=later', '--domain=b.test');
  const before = picture(data);
  await refused(
    ['restore', backup],
    `vault: ${data} already contains a vault\n  Use --data-dir to restore elsewhere, or --replace to replace the vault and keep a copy of it.\n`,
  );
  assert.deepEqual(picture(data), before);
  const { code, stderr } = await run('restore', backup, '--replace');
  assert.equal(code, 0, stderr);
  const kept = /^Kept: (.*vault\.db\.before-restore-\d{8}T\d{6}\.?\d*Z)$/m.exec(stderr)?.[1] ?? '';
  assert.equal(statSync(kept).mode & 0o777, 0o600);
  const names = async () => (await done('certificate', 'list', '--json')).stdout.match(/"name": "\w+"/g);
  assert.deepEqual(await names(), ['"name": "web"']);
  // And back again.
  cpSync(kept, join(data, 'vault.db'));
  assert.deepEqual(await names(), ['"name": "later"', '"name": "web"']);
});

test('--replace keeps a copy of a different master key', async (t) => {
  const { restoreTo, elsewhere, phrase, key, data } = backedUp(t);
  await vault(['certificate', 'create', '--name=other', '--domain=b.test', '--data-dir', elsewhere]);
  const otherKey = readFileSync(join(elsewhere, 'master.key'));
  const { code, stderr } = await restoreTo(elsewhere, '--replace', '--passphrase-file', phrase);
  assert.equal(code, 0, stderr);
  const kept = [...stderr.matchAll(/^Kept: (.*)$/gm)].map(([, path]) => path ?? '');
  assert.equal(kept.length, 2);
  assert.deepEqual(readFileSync(kept.find((path) => path.includes('master.key')) ?? ''), otherKey);
  assert.deepEqual(await served(t, elsewhere, key), await served(t, data, key));
});

test('--replace is rejected while a server runs, but works after kill -9', async (t) => {
  const { data, refused, backup, run } = backedUp(t);
  const server = await serve(t, data);
  await refused(['restore', backup, '--replace'], /^vault: the vault is running: .*\n {2}Stop "vault serve"/);
  assert.equal((await fetch(`${server.url}/api/v1/ready`)).status, 200);
  const left = ['master.key', 'vault.db', 'vault.db-shm', 'vault.db-wal', 'vault.mark'];
  const found = readdirSync(data).filter((name) => !name.startsWith('vault.lock-'));
  assert.deepEqual(found.sort(), left);
  await server.end('SIGKILL');
  const { code, stderr } = await run('restore', backup, '--replace');
  assert.equal(code, 0, `after kill -9: ${stderr}`);
});

test('--replace restores over a damaged database and keeps its WAL', async (t) => {
  const { data, backup, run, key } = backedUp(t);
  const before = await served(t, data, key);
  writeFileSync(join(data, 'vault.db'), 'dear all\n'.repeat(1000));
  writeFileSync(join(data, 'vault.db-wal'), 'a log', { mode: 0o600 });
  const { code, stderr } = await run('restore', backup, '--replace');
  assert.equal(code, 0, stderr);
  const log = /^Kept: (.*vault\.db-wal\.before-restore-.*)$/m.exec(stderr)?.[1] ?? '';
  assert.equal(readFileSync(log, 'utf8'), 'a log');
  assert.deepEqual(await served(t, data, key), before);
});

test('a backup with a missing or different master key is rejected before anything is written', async (t) => {
  const { dir, done, elsewhere } = backedUp(t);
  const plain = join(dir, 'plain.backup');
  await done('backup', plain);
  const needs =
    /^vault: .*plain\.backup needs master key [0-9a-f]{16}, but .*master\.key (is missing|holds [0-9a-f]{16})\n/;
  const without = await vault(['restore', plain, '--data-dir', elsewhere]);
  assert.equal(without.code, 1);
  assert.match(without.stderr, needs);
  assert.equal(existsSync(elsewhere), false);
  mkdirSync(elsewhere, { mode: 0o700 });
  writeFileSync(join(elsewhere, 'master.key'), Buffer.alloc(32, 1), { mode: 0o600 });
  const before = picture(elsewhere);
  for (const args of [[], ['--replace']]) {
    const { code, stderr } = await vault(['restore', plain, '--data-dir', elsewhere, ...args]);
    assert.equal(code, 1);
    assert.match(stderr, needs);
  }
  assert.deepEqual(picture(elsewhere), before);
});

test('a wrong passphrase is rejected, and a different master key is not replaced without --replace', async (t) => {
  const { restoreTo, elsewhere, file, phrase } = backedUp(t);
  const wrong = await restoreTo(elsewhere, '--passphrase-file', file('several words in a raw'));
  assert.deepEqual([wrong.code, existsSync(elsewhere)], [1, false]);
  assert.match(
    wrong.stderr,
    /^vault: wrong passphrase for the master key in the backup\n {2}Try again\. Nothing was changed\.\n$/,
  );
  const unasked = await restoreTo(elsewhere);
  assert.match(unasked.stderr, /cannot prompt for the passphrase without a terminal/);
  mkdirSync(elsewhere, { mode: 0o700 });
  writeFileSync(join(elsewhere, 'master.key'), Buffer.alloc(32, 1), { mode: 0o600 });
  const { code, stderr } = await restoreTo(elsewhere, '--passphrase-file', phrase);
  assert.equal(code, 1);
  assert.match(stderr, /includes master key [0-9a-f]{16}, but .*master\.key holds [0-9a-f]{16}/);
  assert.deepEqual(readdirSync(elsewhere), ['master.key']);
});

test('restore writes the master key to --master-key-file', async (t) => {
  const { dir, restoreTo, elsewhere, phrase, key } = backedUp(t);
  const keyFile = join(dir, 'keys', 'master.key');
  const { code, stderr } = await restoreTo(
    elsewhere,
    '--passphrase-file',
    phrase,
    '--master-key-file',
    keyFile,
  );
  assert.equal(code, 0, stderr);
  assert.deepEqual(readdirSync(elsewhere), ['vault.db']);
  assert.deepEqual(readdirSync(dirname(keyFile)), ['master.key']);
  const server = await serve(t, elsewhere, { args: ['--master-key-file', keyFile] });
  const headers = { Authorization: `Bearer ${key}` };
  assert.equal((await fetch(`${server.url}/api/v1/certificates/web/private.key`, { headers })).status, 200);
});

test('--check reports whether the backup can be restored and writes nothing', async (t) => {
  const { run, refused, backup, data, elsewhere, restoreTo, phrase } = backedUp(t);
  const before = picture(data);
  const { code, stderr } = await run('restore', backup, '--check');
  assert.equal(code, 0);
  assert.match(
    stderr,
    /\nThe backup is intact and can be restored\. The master key \([0-9a-f]{16}\) is .*data\/master\.key\.\n$/,
  );
  const { stderr: there } = await restoreTo(elsewhere, '--check', '--passphrase-file', phrase);
  assert.match(there, /is in the backup, and the passphrase is correct\.\n$/);
  truncateSync(backup, statSync(backup).size - 1);
  await refused(['restore', backup, '--check'], /is not a vault backup, or is truncated/);
  await refused(['restore', join(data, 'none'), '--check'], /cannot read .*none: no such file or directory/);
  assert.deepEqual([picture(data), existsSync(elsewhere)], [before, false]);
});

test('a truncated backup, a bare database and a directory are rejected, and nothing is created', async (t) => {
  const { backup, restoreTo, elsewhere, data, dir } = backedUp(t);
  truncateSync(backup, 100_000);
  assert.match((await restoreTo(elsewhere)).stderr, /is not a vault backup, or is truncated/);
  for (const file of [join(data, 'vault.db'), dir]) {
    const { code, stderr } = await vault(['restore', file, '--data-dir', elsewhere]);
    assert.equal(code, 1);
    assert.match(stderr, /is not a vault backup|cannot read .*: is a directory/);
  }
  assert.equal(existsSync(elsewhere), false);
});

test('a backup of a newer vault is rejected with its version and schema', async (t) => {
  const { vault: newer, dataDir } = await testVault(t, { world: new TestWorld(Date.now()) });
  const database = new BetterSqlite3(join(dataDir, 'vault.db'));
  database.exec("insert into kysely_migration values ('9999-future', 'now')");
  database.close();
  const file = join(tempDir(t), 'newer.backup');
  await makeBackup(newer, file, { unverified: true });
  const masterKeyFile = join(dataDir, 'master.key');
  const data = join(tempDir(t), 'data');
  const { code, stderr } = await vault([
    'restore',
    file,
    '--data-dir',
    data,
    '--master-key-file',
    masterKeyFile,
  ]);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /was written by a newer vault, 0\.0\.0-test \(its schema has 9999-future\)\n {2}Restore it with that version/,
  );
  assert.equal(existsSync(data), false);
});

/** A backup of the vault that test/schemas has from the time of a schema. */
async function oldBackup(t: TestContext, name: string): Promise<{ file: string; masterKeyFile: string }> {
  const kept = new URL(`../../../schemas/${name}/`, import.meta.url);
  const dir = tempDir(t);
  const [file, masterKeyFile] = [join(dir, 'old.backup'), join(dir, 'master.key')];
  writeFileSync(file, gunzipSync(readFileSync(new URL('vault.db.gz', kept))));
  writeFileSync(masterKeyFile, readFileSync(new URL('master.key', kept)), { mode: 0o600 });
  const masterKey = readMasterKey(masterKeyFile);
  assert.ok(masterKey);
  const { schema, counts } = examineCopy(file, file);
  const manifest: Manifest = {
    format: 1,
    vault_version: '0.0.0-old',
    created_at: '2026-01-01T00:00:00Z',
    key_ids: [masterKey.name],
    database_size: statSync(file).size,
    schema: [...schema],
    counts: { ...counts },
  };
  await sealDraft(file, manifest, masterKey);
  return { file, masterKeyFile };
}

test('a backup of an older vault is migrated to the current schema', async (t) => {
  const { file, masterKeyFile } = await oldBackup(t, '0001-first-schema');
  const data = join(tempDir(t), 'data');
  const { code, stderr } = await vault([
    'restore',
    file,
    '--data-dir',
    data,
    '--master-key-file',
    masterKeyFile,
  ]);
  assert.equal(code, 0, stderr);
  assert.deepEqual(readdirSync(data), ['vault.db']);
  const listed = await vault(['certificate', 'list', '--data-dir', data, '--master-key-file', masterKeyFile]);
  assert.equal(listed.code, 0, listed.stderr);
  assert.equal(
    readdirSync(data).some((name) => name.includes('before')),
    false,
    'nothing was left to migrate',
  );
});
