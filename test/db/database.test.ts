/** The database as it is opened: made for its owner only, durable, and by any number of processes at once. */
import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { sql } from 'kysely';
import { StorageError } from '../../src/base/storage-error.ts';
import { Database } from '../../src/db/database.ts';
import { storedValue } from '../../src/db/engine-sql.ts';
import { makeDatabase, openDatabase } from '../harness/database/database-maker.ts';
import { outside } from '../harness/database/outside-database.ts';
import { ensureDatabase, ofFiles, testedEngine } from '../harness/database/tested-engine.ts';
import { race, sourceUrl } from '../harness/processes/racing-processes.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { TestWorld } from '../harness/test-world.ts';

const isFile = ofFiles('its file');

const world = new TestWorld();

async function pragmas(db: Database, name: string): Promise<unknown[]> {
  const read = sql.raw<Record<string, unknown>>(`pragma ${name}`);
  const results = [await read.execute(db.reader), await db.write((writer) => read.execute(writer))];
  return results.map(({ rows }) => Object.values(rows[0] ?? {})[0]);
}

test('a new database is a file that only its owner may read, and so is its directory', isFile, async (t) => {
  const before = process.umask(0);
  t.after(() => process.umask(before));
  const path = join(tempDir(t), 'data', 'vault.db');
  const db = await Database.open(path, world);
  t.after(() => db.close());
  await db.write((writer) => writer.insertInto('settings').values({ key: 'x', value: 1 }).execute());
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    assert.equal(statSync(file).mode & 0o777, 0o600, file);
  }
  assert.equal(statSync(join(path, '..')).mode & 0o777, 0o700);
});

test(
  'both connections use the WAL; the writer enforces foreign keys and syncs every commit',
  isFile,
  async (t) => {
    const db = await Database.open(join(tempDir(t), 'vault.db'), world);
    t.after(() => db.close());
    assert.deepEqual(await pragmas(db, 'journal_mode'), ['wal', 'wal']);
    assert.equal((await pragmas(db, 'foreign_keys'))[1], 1);
    // 2 is FULL: only then is the log synced at every commit.
    assert.equal((await pragmas(db, 'synchronous'))[1], 2);
  },
);

test('a WAL that grew during a long read is truncated after the reader closes', isFile, async (t) => {
  const path = join(tempDir(t), 'vault.db');
  const db = await Database.open(path, world);
  t.after(() => db.close());
  const fill = async (megabytes: number) => {
    for (let count = 0; count < megabytes; count += 1) {
      const value = Buffer.alloc(1_000_000, count);
      const row = { key: 'large', value };
      await db.write((writer) => writer.replaceInto('settings').values(row).execute());
    }
  };
  const reader = new BetterSqlite3(path, { readonly: true });
  reader.exec('begin');
  reader.prepare('select count(*) from settings').get();
  await fill(20);
  assert.ok(statSync(`${path}-wal`).size > 16 * 2 ** 20);
  reader.close();
  await fill(8);
  assert.ok(statSync(`${path}-wal`).size <= 8 * 2 ** 20, String(statSync(`${path}-wal`).size));
});

test('the reading connection cannot write', async (t) => {
  const { db } = await makeDatabase(t);
  await assert.rejects(
    db.reader
      .insertInto('settings')
      .values({ key: 'x', value: storedValue(1) })
      .execute(),
    StorageError,
  );
});

test('a row that violates a foreign key is rejected', async (t) => {
  const { db } = await makeDatabase(t);
  const orphan = { api_key_id: 1, certificate_id: 1 };
  await assert.rejects(
    db.write((writer) => writer.insertInto('api_key_certificates').values(orphan).execute()),
    { code: testedEngine === 'sqlite' ? 'SQLITE_CONSTRAINT_FOREIGNKEY' : '23503' },
  );
});

test('a reader sees committed rows and none of an open transaction', async (t) => {
  const { db } = await makeDatabase(t);
  const find = () => db.reader.selectFrom('settings').select('value').where('key', '=', 'x').execute();
  await db.write(async (writer) => {
    await writer
      .insertInto('settings')
      .values({ key: 'x', value: storedValue(1) })
      .execute();
    assert.deepEqual(await find(), []);
  });
  assert.deepEqual(await find(), [{ value: 1 }]);
});

test('close waits for open transactions', async (t) => {
  const dataDir = tempDir(t);
  const db = await openDatabase(dataDir, world);
  const writing = db.write(async (writer) => {
    for (const key of ['a', 'b', 'c']) {
      await world.turn();
      await writer
        .insertInto('settings')
        .values({ key, value: storedValue(1) })
        .execute();
    }
  });
  await db.close();
  await writing;
  const count = "select count(*) from settings where key in ('a', 'b', 'c')";
  assert.equal(
    outside(dataDir, (again) => again.prepare(count).pluck().get()),
    3,
  );
});

test('an empty file becomes a database', isFile, async (t) => {
  const path = join(tempDir(t), 'vault.db');
  writeFileSync(path, '');
  const db = await Database.open(path, world);
  await db.check();
  await db.close();
});

const opener = `
  const { openDatabase } = await import(process.argv[1]);
  const { realWorld } = await import(process.argv[2]);
  const { storedValue } = await import(process.argv[3]);
  await start();
  const db = await openDatabase(process.argv[4], realWorld);
  const row = { key: 'process-' + process.pid, value: storedValue(1) };
  await db.write((writer) => writer.insertInto('settings').values(row).execute());
  await db.close();
  process.stdout.write('done');
`;

test('processes that open a new database concurrently all succeed and write', async (t) => {
  const dataDir = tempDir(t);
  // Here, not in each process.
  await ensureDatabase(dataDir);
  const maker = new URL('../harness/database/database-maker.ts', import.meta.url).href;
  const modules = [maker, sourceUrl('base/world.ts'), sourceUrl('db/engine-sql.ts')];
  const said = await race(t, 4, opener, [...modules, dataDir]);
  assert.deepEqual(said, Array(4).fill('done'));
  const db = await openDatabase(dataDir, world);
  t.after(() => db.close());
  const rows = await db.reader
    .selectFrom('settings')
    .select('key')
    .where('key', 'like', 'process-%')
    .execute();
  assert.equal(rows.length, 4);
  await db.check();
});
