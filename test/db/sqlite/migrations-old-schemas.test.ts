/** The newest vault starts on the database of every schema that has shipped, and everything in it still works. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import BetterSqlite3 from 'better-sqlite3';
import { ProcessLocks } from '../../../src/db/process-locks.ts';
import { migrations } from '../../../src/db/sqlite/migrations.ts';
import { serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const folder = new URL('../../schemas/', import.meta.url);
const schemas = readdirSync(folder).filter((name) => /^\d{4}-/.test(name));
const read = (schema: string, name: string) => readFileSync(new URL(`${schema}/${name}`, folder));

type Facts = { key: string; revoked: string; etag: string };

/** The audit events as they stand in the file, oldest first. */
function auditEvents(path: string): string[] {
  const database = new BetterSqlite3(path, { readonly: true });
  const rows = database.prepare(
    'select id, at, actor, action, resource, detail, ip from audit_events order by id',
  );
  const events = rows.all().map((row) => JSON.stringify(row));
  database.close();
  return events;
}

test('a test vault exists for every schema that has shipped', () => {
  assert.deepEqual(schemas, Object.keys(migrations));
});

for (const schema of schemas) {
  test(`a vault of the schema ${schema} serves, signs in, opens its secrets and keeps its log`, async (t) => {
    const data = join(tempDir(t), 'data');
    mkdirSync(data, { mode: 0o700 });
    const path = join(data, 'vault.db');
    const old = gunzipSync(read(schema, 'vault.db.gz'));
    writeFileSync(path, old, { mode: 0o600 });
    writeFileSync(join(data, 'master.key'), read(schema, 'master.key'), { mode: 0o600 });
    const facts = JSON.parse(read(schema, 'facts.json').toString()) as Facts;
    const before = auditEvents(path);
    const server = await serve(t, data);
    const get = (file: string, key: string) =>
      fetch(`${server.url}/api/v1/certificates/imported/${file}`, {
        headers: { Authorization: `Bearer ${key}` },
      });
    const key = await get('private.key', facts.key);
    assert.deepEqual([key.status, await key.text()], [200, read(schema, 'served.key').toString()]);
    const chain = await get('fullchain.crt', facts.key);
    assert.deepEqual([chain.status, chain.headers.get('etag')], [200, facts.etag]);
    assert.equal((await get('private.key', facts.revoked)).status, 401);
    assert.equal((await fetch(`${server.url}/api/v1/ready`)).status, 200);
    if (schema >= '0003') {
      const headers = { 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' };
      const body = JSON.stringify({ name: 'alice', password: 'a long enough passphrase' });
      const signedIn = await fetch(`${server.url}/api/v1/session`, { method: 'POST', headers, body });
      assert.equal(signedIn.status, 201, await signedIn.text());
    }
    const done = async (...args: string[]) => {
      const { code, stdout, stderr } = await vault([...args, '--data-dir', data]);
      assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
      return stdout;
    };
    // Everything that is sealed opens, or it could not be resealed.
    await done('master-key', 'rotate');
    assert.match(await done('certificate', 'list'), /^imported +valid /m);
    await done('certificate', 'create', '--name=new', '--domain=new.test');
    if (schema >= '0002' && schema !== '0001-first-schema')
      assert.match(await done('dns-provider', 'list'), /^dns /m);
    await done('audit', 'verify');
    assert.equal((await server.end()).code, 0);
    assert.deepEqual(auditEvents(path).slice(0, before.length), before);
    const trusted = auditEvents(path).filter((event) => event.includes('"action":"integrity.begin"'));
    assert.equal(
      trusted.length,
      schema < '0010' ? 1 : 0,
      'rows of before are trusted once, and an event says so',
    );
    const isNewest = schema === schemas.at(-1);
    const copies = readdirSync(data).filter((name) => name.startsWith('vault.db.before-'));
    assert.equal(copies.length, isNewest ? 0 : 1);
    for (const name of copies)
      assert.deepEqual(auditEvents(join(data, name)), before, 'the copy is of before');
  });
}

test('commands reject a database of a newer vault and leave it byte for byte unchanged', async (t) => {
  const data = join(tempDir(t), 'data');
  mkdirSync(data, { mode: 0o700 });
  const newest = schemas.at(-1) ?? '';
  const path = join(data, 'vault.db');
  writeFileSync(path, gunzipSync(read(newest, 'vault.db.gz')), { mode: 0o600 });
  writeFileSync(join(data, 'master.key'), read(newest, 'master.key'), { mode: 0o600 });
  const database = new BetterSqlite3(path);
  database.pragma('journal_mode = delete');
  database.exec("insert into kysely_migration values ('9999-future', 'now')");
  database.close();
  const bytes = readFileSync(path);
  for (const words of [
    ['serve'],
    ['certificate', 'list'],
    ['master-key', 'rotate'],
    ['master-key', 'status'],
  ]) {
    const { code, stderr } = await vault([...words, '--data-dir', data]);
    assert.equal(code, 1, words.join(' '));
    assert.match(
      stderr,
      /was written by a newer vault \(its schema has 9999-future\)\n {2}Start the newer vault again/,
    );
  }
  assert.deepEqual(readFileSync(path), bytes);
  assert.deepEqual(readdirSync(data).sort(), ['master.key', 'vault.db']);
});

for (const holds of [true, false]) {
  const whose = holds ? 'a server' : 'a server of a version that took no lock';
  test(`a database that ${whose} has open is upgraded only after it closes, with a line about the copy`, async (t) => {
    const data = join(tempDir(t), 'data');
    mkdirSync(data, { mode: 0o700 });
    const path = join(data, 'vault.db');
    const schema = schemas.at(-2) ?? '';
    writeFileSync(path, gunzipSync(read(schema, 'vault.db.gz')), { mode: 0o600 });
    writeFileSync(join(data, 'master.key'), read(schema, 'master.key'), { mode: 0o600 });
    const lock = holds ? new ProcessLocks(data).take('0123456789abcdef') : undefined;
    t.after(() => lock?.release());
    // While a server has it open, the log and the shared memory are beside it.
    const server = new BetterSqlite3(path);
    t.after(() => server.close());
    server.pragma('journal_mode = wal');
    server.prepare('select count(*) from settings').get();
    const before = auditEvents(path);
    const list = ['certificate', 'list', '--data-dir', data];
    const refused = await vault(list);
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /needs an upgrade, but another process has the vault open\n {2}Stop the older "vault serve"/,
    );
    assert.deepEqual(auditEvents(path), before);
    lock?.release();
    server.close();
    const { code, stderr } = await vault(list);
    assert.deepEqual(
      [code, stderr.split('\n')[0]],
      [0, `Upgraded the database. Copy from before the upgrade: ${path}.before-${schemas.at(-1)}`],
    );
  });
}
