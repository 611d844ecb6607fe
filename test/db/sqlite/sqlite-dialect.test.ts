/** Writing: one transaction after the other, patient with other processes, and none of it half done. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { Kysely, sql } from 'kysely';
import { StorageError } from '../../../src/base/storage-error.ts';
import { Database, type Writer } from '../../../src/db/database.ts';
import type { Schema } from '../../../src/db/schema/schema.ts';
import { sqliteDialect } from '../../../src/db/sqlite/sqlite-dialect.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

async function opened(t: TestContext) {
  const world = new TestWorld();
  const path = join(tempDir(t), 'vault.db');
  const db = await Database.open(path, world);
  t.after(() => db.close());
  /** Another process, as far as SQLite can tell. */
  const other = new BetterSqlite3(path);
  t.after(() => other.close());
  return { db, world, path, other };
}

const add = (key: string) => (writer: Writer) =>
  writer.insertInto('settings').values({ key, value: 1 }).execute();

async function keys(db: Database): Promise<string[]> {
  const rows = await db.reader.selectFrom('settings').select('key').orderBy('key').execute();
  return rows.map(({ key }) => key).filter((key) => key !== 'generation');
}

test("a write waits for another process's lock, and the event loop turns meanwhile", async (t) => {
  const { db, world, other } = await opened(t);
  other.exec('begin immediate');
  const writing = db.write(add('a'));
  for (let tries = 0; tries < 3; tries += 1) {
    await world.sleeping(1);
    world.advance(40);
    await world.turn();
  }
  await world.sleeping(1);
  assert.deepEqual(await keys(db), []);
  other.exec('commit');
  world.advance(40);
  await writing;
  assert.deepEqual(await keys(db), ['a']);
});

test('a write that waits 5 s for a lock is rejected with a hint, and the next one works', async (t) => {
  const { db, world, path, other } = await opened(t);
  other.exec('begin immediate');
  const began = world.now();
  const refused = assert.rejects(db.write(add('a')), (error) => {
    assert(error instanceof StorageError);
    assert.match(error.message, /^the database is locked by another process/);
    assert(error.message.includes(path));
    assert.match(error.hint ?? '', /Retry in a moment/);
    return true;
  });
  await passUntilSettled(world, refused);
  const waited = world.now() - began;
  assert.ok(waited >= 5000 && waited < 5100, `${waited} ms`);
  other.exec('rollback');
  await db.write(add('b'));
  assert.deepEqual(await keys(db), ['b']);
});

/** Lets the time pass of a sleep, until this has ended. */
async function passUntilSettled(world: TestWorld, ending: Promise<unknown>): Promise<void> {
  let settled = false;
  const end = () => {
    settled = true;
  };
  ending.then(end, end);
  while (!settled) {
    await world.turn();
    if (world.asleep > 0) world.advance(1);
  }
  await ending;
}

test('writes queued behind one that timed out fail with it, and later writes wait for a lock again', async (t) => {
  const { db, world, other } = await opened(t);
  other.exec('begin immediate');
  const began = world.now();
  const refused = Promise.allSettled(['a', 'b', 'c', 'd'].map((key) => db.write(add(key))));
  await passUntilSettled(world, refused);
  assert.deepEqual(
    (await refused).map(({ status }) => status),
    Array(4).fill('rejected'),
  );
  assert.ok(world.now() - began < 5100, `${world.now() - began} ms`);
  other.exec('rollback');
  await db.write(add('e'));
  other.exec('begin immediate');
  const patient = db.write(add('f'));
  await world.sleeping(1);
  world.advance(40);
  await world.sleeping(1);
  other.exec('rollback');
  await passUntilSettled(world, patient);
  assert.deepEqual(await keys(db), ['e', 'f']);
});

test('a clock that is set back does not make a write wait forever', async (t) => {
  const { db, world, other } = await opened(t);
  other.exec('begin immediate');
  const refused = assert.rejects(db.write(add('b')), StorageError);
  await world.sleeping(1);
  world.advance(5);
  world.advance(-365 * 86_400_000);
  await passUntilSettled(world, refused);
});

test('a write takes the lock at its beginning, so that another process cannot write meanwhile', async (t) => {
  const { db, other } = await opened(t);
  other.pragma('busy_timeout = 0');
  await db.write(async (writer) => {
    await writer.selectFrom('settings').selectAll().execute();
    assert.throws(() => other.exec('begin immediate'), { code: 'SQLITE_BUSY' });
    await add('a')(writer);
  });
  assert.deepEqual(await keys(db), ['a']);
});

test('concurrent writes run one after the other', async (t) => {
  const { db, world } = await opened(t);
  const steps: string[] = [];
  const work = (name: string) => async (writer: Writer) => {
    steps.push(`${name} begins`);
    await add(name)(writer);
    await world.turn();
    steps.push(`${name} ends`);
    return name;
  };
  const results = await Promise.all(['a', 'b', 'c'].map((name) => db.write(work(name))));
  assert.deepEqual(results, ['a', 'b', 'c']);
  assert.deepEqual(
    steps,
    ['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]),
  );
});

test('an error thrown in a write rolls it back and rejects with the same error', async (t) => {
  const { db } = await opened(t);
  const reason = new Error('no');
  const failing = db.write(async (writer) => {
    await add('a')(writer);
    throw reason;
  });
  await assert.rejects(failing, (error) => error === reason);
  await db.write(add('b'));
  assert.deepEqual(await keys(db), ['b']);
});

test('a statement that SQLite rejects rolls back the whole write', async (t) => {
  const { db } = await opened(t);
  const failing = db.write(async (writer) => {
    await add('a')(writer);
    await add('a')(writer);
  });
  await assert.rejects(failing, { code: 'SQLITE_CONSTRAINT_PRIMARYKEY' });
  assert.deepEqual(await keys(db), []);
  await db.write(add('a'));
});

test('a full disk is reported with a hint, the write has no effect, and later writes work', async (t) => {
  const { db } = await opened(t);
  const limit = (pages: number) =>
    db.write((writer) => sql.raw(`pragma max_page_count = ${pages}`).execute(writer));
  // Less than there are means: not one page more. SQLite answers then as on a disk without space.
  await limit(1);
  const large = { key: 'large', value: Buffer.alloc(1_000_000) };
  const refused = db.write(async (writer) => {
    await add('small')(writer);
    await writer.insertInto('settings').values(large).execute();
  });
  await assert.rejects(refused, (error) => {
    assert(error instanceof StorageError);
    assert.match(error.message, /^the disk with the database is full .*SQLITE_FULL/);
    assert.match(error.hint ?? '', /Free some space/);
    return true;
  });
  assert.deepEqual(await keys(db), []);
  await db.write(add('small'));
  await limit(1_000_000);
  await db.write((writer) => writer.insertInto('settings').values(large).execute());
  assert.deepEqual(await keys(db), ['large', 'small']);
  await db.check();
});

test('a statement is prepared once, however often it runs and with any parameters', async (t) => {
  const { path, world } = await opened(t);
  const database = new BetterSqlite3(path);
  t.after(() => database.close());
  const prepare = t.mock.method(database, 'prepare');
  const db = new Kysely<Schema>({ dialect: sqliteDialect(database, world) });
  for (let n = 0; n < 10; n += 1) {
    await db.selectFrom('settings').select('value').where('key', '=', `key ${n}`).execute();
  }
  assert.equal(prepare.mock.callCount(), 1);
});

test('more statements than the cache holds still run', async (t) => {
  const { db } = await opened(t);
  for (let n = 0; n < 1100; n += 1) {
    const { rows } = await sql.raw<{ n: number }>(`select ${n} as n`).execute(db.reader);
    assert.deepEqual(rows, [{ n }]);
  }
});

test('a cached statement returns columns that were added after it was prepared', async (t) => {
  const { db, other } = await opened(t);
  other.exec("create table plain (a text); insert into plain values ('a')");
  const read = () => sql<object>`select * from plain`.execute(db.reader);
  assert.deepEqual((await read()).rows, [{ a: 'a' }]);
  other.exec('alter table plain add column b integer default 2');
  assert.deepEqual((await read()).rows, [{ a: 'a', b: 2 }]);
});

test('an update reports how many rows it changed', async (t) => {
  const { db } = await opened(t);
  const changed = await db.write(async (writer) => {
    await add('a')(writer);
    await add('b')(writer);
    return writer.updateTable('settings').set({ value: 2 }).where('key', '!=', 'generation').execute();
  });
  assert.equal(changed[0]?.numUpdatedRows, 2n);
});
