/** `vault backup`: one whole file of one moment, or none; sealed, recorded, and refused in sentences. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { readBackup, readManifestPage } from '../../../../src/domain/backup/backup-file.ts';
import type { Manifest } from '../../../../src/domain/backup/backup-manifest.ts';
import { type CommandLine, commandLine } from '../../../harness/processes/command-line.ts';
import { fromExecutable, serve } from '../../../harness/processes/vault-process.ts';

const passphrase = 'several words in a row';

/** A vault with a certificate and a key, and where its backups go. */
async function filledVault(
  t: TestContext,
): Promise<CommandLine & { dir: string; at: (name: string) => string }> {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=web', '--domain=a.test');
  await line.done('api-key', 'create', '--name=k', '--scope=private_keys:read', '--certificate=web');
  const dir = join(dirname(line.data), 'backups');
  mkdirSync(dir);
  return { ...line, dir, at: (name) => join(dir, name) };
}

function rows<T>(file: string, sql: string): T[] {
  const database = new BetterSqlite3(file, { readonly: true });
  try {
    return database.prepare<[], T>(sql).all();
  } finally {
    database.close();
  }
}

const manifestOf = (file: string): Manifest => {
  const page = readManifestPage(file);
  assert(typeof page === 'object', `${file}: ${page}`);
  return page.manifest;
};

test('a backup is one database file with mode 0600 and a manifest of its contents', async (t) => {
  const { done, at, dir, data } = await filledVault(t);
  const { stderr, stdout } = await done('backup', at('x.backup'));
  assert.equal(stdout, '');
  assert.match(
    stderr,
    /x\.backup: 1 certificate, 1 version, 1 API key, as of \d{4}-.*Z\nThe backup does not include the master key \([0-9a-f]{16}\)\. Keep a copy of the key elsewhere\.\n$/,
  );
  assert.deepEqual(readdirSync(dir), ['x.backup']);
  assert.equal(statSync(at('x.backup')).mode & 0o777, 0o600);
  const { manifest } = await readBackup(at('x.backup'));
  assert.equal(manifest.counts.certificates, 1);
  assert.equal(manifest.sealed_master_key, undefined);
  assert(stderr.includes(manifest.key_ids[0] ?? 'none'));
  assert.deepEqual(rows(at('x.backup'), 'pragma integrity_check'), [{ integrity_check: 'ok' }]);
  assert.deepEqual(rows(at('x.backup'), 'select name from certificates'), [{ name: 'web' }]);
  assert.deepEqual(
    readdirSync(data).sort(),
    ['master.key', 'vault.db'],
    'nothing is left in the data directory',
  );
});

test('the audit log and the settings record a backup with its timestamp', async (t) => {
  const { done, at, data } = await filledVault(t);
  await done('backup', at('x.backup'));
  const file = join(data, 'vault.db');
  const [event] = rows<Record<string, string>>(
    file,
    "select * from audit_events where action = 'backup.create'",
  );
  const { created_at, database_size } = manifestOf(at('x.backup'));
  assert.equal(event?.actor, 'local-cli');
  assert.equal(event.resource, 'backup:x.backup');
  assert.deepEqual(JSON.parse(event.detail ?? ''), { created_at, database_size, with_master_key: false });
  const [last] = rows(file, "select value from settings where key = 'last-backup-at'");
  assert.deepEqual(last, { value: Date.parse(created_at) });
});

test('a backup contains no sessions and no setup link, not even as deleted bytes', async (t) => {
  const { done, at, data } = await filledVault(t);
  const server = await serve(t, data);
  const link = await done('admin', 'setup-link');
  const token = /#token=(\S+)/.exec(link.stdout)?.[1] ?? '';
  const readSetup = "select value from settings where key like 'setup-token-%'";
  const [, offered] = rows<{ value: Buffer }>(join(data, 'vault.db'), `${readSetup} order by key`);
  assert(Buffer.isBuffer(offered?.value));
  await done('backup', at('offered.backup'));
  assert.deepEqual(rows(at('offered.backup'), readSetup), []);
  assert.equal(readFileSync(at('offered.backup')).includes(offered.value), false);
  const body = JSON.stringify({ token, name: 'alice', password: passphrase });
  const headers = { 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' };
  const setup = await fetch(`${server.url}/api/v1/setup`, { method: 'POST', headers, body });
  assert.ok(setup.ok, String(setup.status));
  const [session] = rows<{ token_hash: Buffer }>(join(data, 'vault.db'), 'select token_hash from sessions');
  assert(session);
  await done('backup', at('x.backup'));
  assert.deepEqual(rows(at('x.backup'), 'select * from sessions'), []);
  assert.deepEqual(rows(at('x.backup'), 'select name from administrators'), [{ name: 'alice' }]);
  assert.equal(readFileSync(at('x.backup')).includes(session.token_hash), false);
});

test('--with-master-key includes the master key only encrypted under the passphrase', async (t) => {
  const { done, at, file, data } = await filledVault(t);
  const source = file(`${passphrase}\n`);
  const { stderr } = await done('backup', at('x.backup'), '--with-master-key', '--passphrase-file', source);
  assert.match(
    stderr,
    /The backup includes the master key \([0-9a-f]{16}\), sealed under the passphrase\.\n$/,
  );
  const key = readFileSync(join(data, 'master.key'));
  const bytes = readFileSync(at('x.backup'));
  assert.equal(manifestOf(at('x.backup')).sealed_master_key?.kdf, 'argon2id');
  for (const form of [
    key,
    key.toString('base64').slice(0, 40),
    key.toString('hex'),
    passphrase,
    'PRIVATE KEY',
  ]) {
    assert.equal(bytes.includes(form), false);
  }
});

test('a weak, empty, missing or unused passphrase is rejected, and nothing is written', async (t) => {
  const { refused, at, file, dir } = await filledVault(t);
  const withKey = ['backup', at('x'), '--with-master-key', '--passphrase-file'];
  await refused([...withKey, file('short')], /passphrase refused: a passphrase has at least 12 characters/);
  await refused([...withKey, file('\n')], /is empty/);
  await refused([...withKey, join(dir, 'none')], /^vault: cannot read .*none: no such file/);
  await refused(
    ['backup', at('x'), '--with-master-key'],
    /cannot prompt for the passphrase without a terminal/,
    2,
  );
  await refused(
    ['backup', at('x'), '--passphrase-file', file(passphrase)],
    /--passphrase-file needs --with-master-key/,
    2,
  );
  assert.deepEqual(readdirSync(dir), []);
});

test('an existing file is rejected; --replace replaces only vault backups', async (t) => {
  const { refused, done, at, dir, data } = await filledVault(t);
  await done('backup', at('x'));
  const before = readFileSync(at('x'));
  await refused(
    ['backup', at('x')],
    `vault: ${at('x')} already exists\n  Choose another name, or add --replace.\n`,
  );
  assert.deepEqual(readFileSync(at('x')), before);
  await done('certificate', 'create', '--name=two', '--domain=b.test');
  await done('backup', at('x'), '--replace');
  assert.equal(manifestOf(at('x')).counts.certificates, 2);
  writeFileSync(at('letters.txt'), 'dear all');
  symlinkSync(join(data, 'vault.db'), at('link'));
  for (const name of ['letters.txt', 'link']) {
    await refused(['backup', at(name), '--replace'], /exists and is not a vault backup/);
  }
  assert.equal(readFileSync(at('letters.txt'), 'utf8'), 'dear all');
  await refused(['backup', dir], /is a directory/);
  assert.deepEqual(readdirSync(dir).sort(), ['letters.txt', 'link', 'x']);
});

test('a missing or read-only directory and the data directory are rejected as destinations', async (t) => {
  const { refused, at, dir, data } = await filledVault(t);
  await refused(
    ['backup', join(dir, 'none', 'x')],
    /cannot write the backup to .*none.*\n {2}Choose an existing directory/,
  );
  for (const name of ['x', 'vault.db', 'master.key']) {
    await refused(
      ['backup', join(data, name), '--replace'],
      /is in the data directory\n {2}A backup there is lost/,
    );
  }
  symlinkSync(data, at('sideways'));
  await refused(['backup', join(at('sideways'), 'x')], /is in the data directory/);
  if (process.getuid?.() !== 0) {
    chmodSync(dir, 0o500);
    await refused(['backup', at('x')], /cannot be written/);
    chmodSync(dir, 0o700);
  }
  assert.deepEqual(readdirSync(data).sort(), ['master.key', 'vault.db']);
  assert.deepEqual(readdirSync(dir), ['sideways']);
});

test('backup without a vault fails and creates nothing', async (t) => {
  const { refused, data } = commandLine(t);
  await refused(['backup', join(dirname(data), 'x')], /^vault: no vault in /);
  assert.deepEqual(readdirSync(dirname(data)), []);
});

test('a backup to standard output is complete and leaves no files in the data directory', async (t) => {
  const { at, data } = await filledVault(t);
  const child = spawn(fromExecutable[0], ['backup', '-', '--data-dir', data], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(child, 'close');
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer);
  assert.deepEqual(await ended, [0, null]);
  writeFileSync(at('x'), Buffer.concat(chunks));
  assert.equal((await readBackup(at('x'))).manifest.counts.certificates, 1);
  assert.deepEqual(readdirSync(data).sort(), ['master.key', 'vault.db']);
  const events = rows<{ resource: string }>(
    join(data, 'vault.db'),
    "select resource from audit_events where action = 'backup.create'",
  );
  assert.deepEqual(events, [{ resource: 'backup:standard output' }]);
});

test('a backup fails and is not recorded when the reader closes the pipe early', async (t) => {
  const { data } = await filledVault(t);
  const child = spawn(fromExecutable[0], ['backup', '-', '--data-dir', data], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = once(child, 'close');
  await once(child.stdout, 'readable');
  child.stdout.destroy();
  const [code] = (await ended) as [number];
  assert.equal(code, 1, stderr);
  assert.match(stderr, /^vault: backup incomplete: .*\n {2}Discard what the reader received/);
  assert.deepEqual(readdirSync(data).sort(), ['master.key', 'vault.db']);
  assert.deepEqual(rows(join(data, 'vault.db'), "select * from settings where key = 'last-backup-at'"), []);
});

test('a backup under constant writes is a consistent snapshot', async (t) => {
  const { data, at, run, done } = await filledVault(t);
  const server = await serve(t, data);
  // Another process commits as fast as it can; each commit changes two tables together.
  const flood = spawn(process.execPath, ['-e', floodScript, join(data, 'vault.db')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => flood.kill());
  await once(flood.stdout, 'readable');
  for (const name of ['one', 'two', 'three']) await done('backup', at(name));
  const { code } = await run('certificate', 'list');
  assert.equal(code, 0);
  flood.stdin.end();
  const [flooded] = await once(flood, 'close');
  assert.equal(flooded, 0, 'no writer was locked out');
  const pairs = ['one', 'two', 'three'].map((name) => {
    const [row] = rows<{ events: number; value: number }>(
      at(name),
      "select (select count(*) from audit_events where actor = 'flood') events, value from settings where key = 'flood'",
    );
    assert.equal(row?.events, row?.value, name);
    return row?.value ?? 0;
  });
  assert.ok((pairs[0] ?? 0) < (pairs[2] ?? 0), `the flood went on: ${pairs}`);
  assert.equal((await fetch(`${server.url}/api/v1/health`)).status, 200);
});

const floodScript = `
  const BetterSqlite3 = require('better-sqlite3');
  const database = new BetterSqlite3(process.argv[1], { timeout: 10000 });
  database.exec("insert into settings values ('flood', 0)");
  const event = database.prepare("insert into audit_events (at, actor, action, resource, detail) values (1, 'flood', 'x', 'x', ?)");
  const count = database.prepare("update settings set value = value + 1 where key = 'flood'");
  const both = database.transaction(() => { event.run('{"a":"' + 'x'.repeat(2000) + '"}'); count.run(); });
  let on = true;
  process.stdin.on('end', () => { on = false; }).resume();
  const go = () => { both(); if (on) setImmediate(go); else database.close(); };
  both();
  process.stdout.write('flooding');
  go();
`;
