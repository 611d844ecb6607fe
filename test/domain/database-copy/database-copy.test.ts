/** Moving a vault between engines: what arrives, and what is refused because something would be lost or doubled. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import {
  assertSame,
  contentsOf,
  done,
  filledVault,
  openPlace,
  refused,
} from '../../harness/database/moving-vault.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { postgresServer } from '../../harness/postgres/postgres.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const needed = needsPostgres();

test(
  'a vault that moves to PostgreSQL, to another database there, and back is the same to the last row',
  needed,
  async (t) => {
    const data = await filledVault(t);
    const key = ['--master-key-file', join(data, 'master.key')];
    const server = await postgresServer();
    const [one, two] = [await server.createDatabase(), await server.createDatabase()];
    const back = join(tempDir(t), 'back');
    const file = join(data, 'vault.db');
    const before = await contentsOf(file);
    const exported = await done('export', '--data-dir', data);

    await done('database', 'copy', '--to', one, '--data-dir', data);
    assertSame(before, await contentsOf(one), ['database.copy']);
    assert.equal(await done('export', '--data-dir', data, '--database', one), exported);
    await done('database', 'copy', '--to', two, '--data-dir', data, '--database', one);
    assertSame(before, await contentsOf(two), ['database.copy', 'database.copy']);
    await done('database', 'copy', '--to', back, '--data-dir', data, '--database', two);
    assertSame(before, await contentsOf(join(back, 'vault.db')), [
      'database.copy',
      'database.copy',
      'database.copy',
    ]);
    assert.equal(await done('export', '--data-dir', back, ...key), exported);
    await done('audit', 'verify', '--data-dir', back, ...key);
    assert.deepEqual(
      readdirSync(back).filter((name) => !name.startsWith('vault.db')),
      [],
    );
    assert.ok(!existsSync(join(back, 'vault.db.copying')));
    const check = new BetterSqlite3(join(back, 'vault.db'));
    assert.equal(check.pragma('integrity_check', { simple: true }), 'ok');
    check.close();
    // New rows continue where the ids of the old ones ended.
    await done(
      'api-key',
      'create',
      '--name=new',
      '--scope=certificates:read',
      '--certificate=web',
      '--data-dir',
      back,
      ...key,
    );
    const { assigned } = await contentsOf(join(back, 'vault.db'));
    assert.equal(assigned.get('api_keys'), (before.assigned.get('api_keys') ?? 0) + 1);
  },
);

test(
  'a moved vault rejects commands and reports its new location until it is reopened',
  needed,
  async (t) => {
    const data = await filledVault(t);
    const server = await postgresServer();
    const url = await server.createDatabase();
    await done('database', 'copy', '--to', url, '--data-dir', data);
    const places = [
      ['--data-dir', data],
      ['--data-dir', data, '--database', url],
    ] as const;
    await done('database', 'copy', '--to', join(data, '..', 'third'), ...places[1]);
    for (const [index, place] of places.entries()) {
      const to = index === 0 ? /was moved to postgres:\/\// : /was moved to \/.*\/third\n/;
      for (const words of [['certificate', 'list'], ['serve'], ['backup', join(data, '..', 'x.backup')]]) {
        await refused([...words, ...place], to);
      }
      await refused(['database', 'copy', '--to', join(data, '..', 'other'), ...place], to);
      assert.ok(!existsSync(join(data, '..', 'other', 'vault.db')));
      await refused(['database', 'reopen', ...place], /Add --yes to confirm/);
      await done('database', 'reopen', '--yes', ...place);
      assert.match(await done('certificate', 'list', ...place), /^web /m);
      await done('audit', 'verify', ...place);
      await done('certificate', 'create', '--name=later', '--domain=later.test', ...place);
      await refused(['database', 'reopen', '--yes', ...place], /was not moved/);
    }
  },
);

test('a process that had the database open before the move can no longer write to it', needed, async (t) => {
  const data = await filledVault(t);
  const server = await postgresServer();
  const url = await server.createDatabase();
  await done('database', 'copy', '--to', url, '--data-dir', data);
  const file = await openPlace(join(data, 'vault.db'));
  const write = (db: typeof file) =>
    db.write((writer) => writer.updateTable('certificates').set({ last_error: 'x' }).execute());
  await assert.rejects(write(file), /the vault was moved to another database/);
  await file.close();
  const open = await openPlace(url);
  await write(open);
  await done('database', 'copy', '--to', join(data, '..', 'third'), '--data-dir', data, '--database', url);
  await assert.rejects(write(open), /the vault was moved to another database/);
  await open.close();
});

test('a target that is not empty is rejected, and both databases stay unchanged', needed, async (t) => {
  const data = await filledVault(t);
  const server = await postgresServer();
  const url = await server.createDatabase();
  const other = join(tempDir(t), 'other');
  await done('certificate', 'create', '--name=theirs', '--domain=theirs.test', '--data-dir', other);
  const their = ['--data-dir', other, '--database', url];
  await done('database', 'copy', '--to', url, '--data-dir', other);
  const before = await contentsOf(join(data, 'vault.db'));
  for (const to of [url, data, other]) {
    await refused(
      ['database', 'copy', '--to', to, '--data-dir', data],
      /already contains a vault\n {2}Name an empty/,
    );
  }
  assert.deepEqual(await contentsOf(join(data, 'vault.db')), before);
  assert.match(await done('certificate', 'list', ...their), /^theirs /m);
  assert.match(await done('certificate', 'list', '--data-dir', data), /^web /m);
  assert.ok(!readdirSync(other).includes('vault.db.copying'));
  // A file in the place of the directory, and one whose log is left.
  const lost = join(tempDir(t), 'lost');
  mkdirSync(lost, { mode: 0o700 });
  writeFileSync(join(lost, 'vault.db-wal'), 'log of a database that is gone', { mode: 0o600 });
  await refused(['database', 'copy', '--to', lost, '--data-dir', data], /already contains a vault/);
  await refused(['database', 'copy', '--to', join(data, 'master.key'), '--data-dir', data], /\n {2}\S/);
});

test('a wrong key and damage are found before anything is committed', needed, async (t) => {
  const data = await filledVault(t);
  const file = join(data, 'vault.db');
  const server = await postgresServer();
  const url = await server.createDatabase();
  const copy = ['database', 'copy', '--to', url, '--data-dir', data];
  const wrong = join(tempDir(t), 'wrong.key');
  writeFileSync(wrong, Buffer.alloc(32, 7).toString('base64'), { mode: 0o600 });
  await refused([...copy, '--master-key-file', wrong], /is not the master key of the vault|not a master key/);
  const change = (sql: string) => {
    const db = new BetterSqlite3(file);
    db.pragma('foreign_keys = off');
    db.exec(sql);
    db.close();
  };
  const kept =
    'create table kept as select * from dns_providers; create table log as select * from audit_events;';
  change(kept);
  change("update dns_providers set sealed_secret = cast(substr(sealed_secret, 1, 40) || x'00' as blob)");
  await refused(copy, /sealed secrets do not open: dns_providers 1\n.*Nothing was copied/);
  change('update dns_providers set sealed_secret = (select sealed_secret from kept)');
  change("update audit_events set actor = 'admin:1' where id = 2");
  await refused(copy, /the audit log failed verification: .*\n.*Nothing was copied/);
  change('update audit_events set actor = (select actor from log where log.id = audit_events.id)');
  change('insert into api_key_certificates values (999, 1)');
  await refused(copy, /did not take all rows: .*api_key_certificates.*\n.*doctor/);
  change('delete from api_key_certificates where api_key_id = 999; drop table kept; drop table log');
  assert.deepEqual(await server.query('select 1 from audit_events', [], new URL(url).pathname.slice(1)), []);
  // Nothing was marked, and nothing was left in the target.
  const before = await contentsOf(file);
  await done(...copy);
  assertSame(before, await contentsOf(url), ['database.copy']);
  rmSync(wrong);
});
