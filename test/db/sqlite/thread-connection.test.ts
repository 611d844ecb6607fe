/** Writing on a thread of its own: the same promises as in the calling thread, and the event loop turns meanwhile. */
import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import BetterSqlite3 from 'better-sqlite3';
import { StorageError } from '../../../src/base/storage-error.ts';
import { realWorld, type World } from '../../../src/base/world.ts';
import { startWriterThread } from '../../../src/cli/runtime/writer-thread.ts';
import type { NewAuditEvent } from '../../../src/db/audit/audit-insertion.ts';
import { Database, type Writer } from '../../../src/db/database.ts';
import { ThreadConnection } from '../../../src/db/sqlite/thread-connection.ts';
import { verifyChain } from '../../../src/domain/audit/audit-verification.ts';
import { bound } from '../../harness/database/bound-database.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

/** From the sources, the thread loads the library by its path. */
function started(): Worker {
  const thread = startWriterThread();
  assert(thread);
  return thread;
}

async function opened(t: TestContext, world: World = realWorld) {
  const path = join(tempDir(t), 'vault.db');
  let thread: Worker | undefined;
  const startThread = () => {
    thread = started();
    return thread;
  };
  const db = await bound(await Database.open(path, world, { startThread }));
  t.after(() => db.close());
  /** Another process, as far as SQLite can tell. */
  const other = new BetterSqlite3(path);
  t.after(() => other.close());
  return { db, path, other, thread: thread as unknown as Worker };
}

const put = (key: string, value: string | number | Buffer) => (writer: Writer) =>
  writer.insertInto('settings').values({ key, value }).execute();

async function settingOf(db: Database, key: string): Promise<unknown> {
  const row = await db.reader
    .selectFrom('settings')
    .select('value')
    .where('key', '=', key)
    .executeTakeFirst();
  return row?.value;
}

const event = (n: number): NewAuditEvent => ({
  at: n,
  actor: 'api-key:1:www',
  action: 'certificate.download',
  resource: 'certificate:web',
  detail: '{}',
  ip: n % 2 === 0 ? '192.0.2.1' : null,
  request_id: `request ${n}`,
});

const times = (other: BetterSqlite3.Database) =>
  other
    .prepare("select at from audit_events where action = 'certificate.download' order by id")
    .pluck()
    .all();

test('text, numbers and bytes are read back unchanged in the transaction', async (t) => {
  const { db } = await opened(t);
  // Small Buffers share a block of memory, of which nothing else may be stored.
  const bytes = Buffer.from('only this');
  const read = await db.write(async (writer) => {
    await put('text', 'ä')(writer);
    await put('number', 2 ** 40)(writer);
    await put('bytes', bytes)(writer);
    const { numInsertedOrUpdatedRows } = await writer
      .insertInto('settings')
      .values({ key: 'more', value: 1 })
      .executeTakeFirstOrThrow();
    assert.equal(numInsertedOrUpdatedRows, 1n);
    return writer
      .selectFrom('settings')
      .selectAll()
      .where('key', 'in', ['text', 'number', 'bytes'])
      .execute();
  });
  const values = Object.fromEntries(read.map(({ key, value }) => [key, value]));
  assert.deepEqual(values, { text: 'ä', number: 2 ** 40, bytes });
  assert(Buffer.isBuffer(values.bytes));
  assert.deepEqual(await settingOf(db, 'bytes'), bytes);
});

test('a transaction that fails leaves nothing, its error keeps code and text, and the next one works', async (t) => {
  const { db } = await opened(t);
  await db.write(put('there', 1));
  await assert.rejects(
    db.write(async (writer) => {
      await put('new', 1)(writer);
      await put('there', 2)(writer);
    }),
    { code: 'SQLITE_CONSTRAINT_PRIMARYKEY', message: 'UNIQUE constraint failed: settings.key' },
  );
  assert.equal(await settingOf(db, 'new'), undefined);
  await assert.rejects(
    db.write(async (writer) => {
      await put('new', 1)(writer);
      throw new Error('changed my mind');
    }),
    /^Error: changed my mind$/,
  );
  await db.write(put('next', 1));
  assert.deepEqual([await settingOf(db, 'new'), await settingOf(db, 'next')], [undefined, 1]);
});

test('a stalled transaction is rolled back for the next write, and its later statements are rejected', async (t) => {
  const { db, other } = await opened(t);
  const written = Promise.withResolvers<void>();
  const resumed = Promise.withResolvers<void>();
  const writing = db.write(async (writer) => {
    await put('before', 1)(writer);
    written.resolve();
    await resumed.promise;
    await put('after', 1)(writer);
  });
  await written.promise;
  // Blocks this event loop until the other process, as far as SQLite can tell, has the lock.
  other.exec("begin immediate; insert into settings (key, value) values ('other', 1); commit");
  await db.append([event(1)]);
  resumed.resolve();
  await assert.rejects(writing, (error) => error instanceof StorageError && /stalled/.test(error.message));
  await db.write(put('next', 1));
  const stored = await Promise.all(['before', 'after', 'other', 'next'].map((key) => settingOf(db, key)));
  assert.deepEqual(stored, [undefined, undefined, 1, 1]);
  assert.deepEqual(times(other), [1]);
});

test('events appended during and between writes form one chain in order', async (t) => {
  const { db, other } = await opened(t);
  const held = Promise.withResolvers<void>();
  const writing = db.write(async (writer) => {
    await put('first', 1)(writer);
    await held.promise;
    await put('second', 1)(writer);
  });
  let recorded = 0;
  const appended = [1, 2, 3].map((n) => db.append([event(n), event(n)]).then(() => (recorded += 1)));
  // Something else that the thread answers: what was appended before waits for the end of the transaction.
  await realWorld.turn();
  assert.deepEqual([recorded, times(other)], [0, []]);
  held.resolve();
  await writing;
  await Promise.all(appended);
  await Promise.all([db.write(put('third', 1)), db.append([event(4)]), db.write(put('fourth', 1))]);
  assert.deepEqual(times(other), [1, 1, 2, 2, 3, 3, 4]);
  assert.equal(await settingOf(db, 'fourth'), 1);
  assert.equal((await verifyChain({ db })).faultCount, 0);
});

test('events after a truncation of the log continue the known chain, so that verify finds the gap', async (t) => {
  const { db, other } = await opened(t);
  const lost: unknown[] = [];
  db.memory.onLost = (events) => lost.push(events);
  const append = () => db.append([event(1)]);
  const change = () =>
    db.write(async ({ events }) => {
      events.push(event(2));
    });
  const cut = (id: number, mark: unknown) => {
    other.prepare('delete from audit_events where id > ?').run(id);
    other.prepare("update settings set value = ? where key = 'audit-mark'").run(mark);
  };
  const marked = () => other.prepare("select value from settings where key = 'audit-mark'").pluck().get();
  await append();
  const first = marked();
  await append();
  cut(1, first);
  assert.deepEqual((await verifyChain({ db })).faults, [], 'nothing shows yet');
  await append();
  assert.deepEqual(lost, [{ from: 2, to: 2 }]);
  const kinds = async () => (await verifyChain({ db })).faults.map(({ id, kind }) => `${id} ${kind}`);
  assert.deepEqual(await kinds(), ['3 missing']);
  // A transaction of the event loop is cut, and an event of the thread comes next; then the other way round.
  const third = marked();
  await change();
  cut(3, third);
  await append();
  assert.deepEqual(await kinds(), ['3 missing', '5 missing']);
  const fifth = marked();
  await append();
  cut(5, fifth);
  await change();
  assert.deepEqual(await kinds(), ['3 missing', '5 missing', '7 missing']);
  assert.equal(lost.length, 3);
});

test('events that were deleted and overwritten by another process are reported as lost', async (t) => {
  const { db, other, path } = await opened(t);
  const lost: unknown[] = [];
  db.memory.onLost = (events) => lost.push(events);
  await db.append([event(1)]);
  const mark = other.prepare("select value from settings where key = 'audit-mark'").pluck().get();
  await db.append([event(2)]);
  other.prepare('delete from audit_events where id > 1').run();
  other.prepare("update settings set value = ? where key = 'audit-mark'").run(mark);
  const second = await bound(await Database.open(path, realWorld));
  t.after(() => second.close());
  for (const n of [3, 4, 5]) await second.append([event(n)]);
  assert.deepEqual((await verifyChain({ db })).faults, []);
  await db.append([event(6)]);
  assert.deepEqual(lost, [{ from: 2, to: 2 }]);
  const kinds = (await verifyChain({ db })).faults.map(({ id, kind }) => `${id} ${kind}`);
  assert.deepEqual(kinds, ['5 changed']);
});

test('the event loop turns while another process holds the lock, and nothing is lost', async (t) => {
  const { db, other } = await opened(t);
  other.exec('begin immediate');
  let done = 0;
  const all = [db.append([event(1)]), db.write(put('a', 1)), db.append([event(2)])].map((one) =>
    one.then(() => (done += 1)),
  );
  for (let turns = 0; turns < 1000; turns += 1) await realWorld.turn();
  assert.equal(done, 0);
  other.exec('commit');
  await Promise.all(all);
  assert.deepEqual([times(other), await settingOf(db, 'a')], [[1, 2], 1]);
});

test('requireProgress throws while a write has waited 30 s and not after it has ended', async (t) => {
  const world = new TestWorld();
  const { db, other } = await opened(t, world);
  other.exec('begin immediate');
  const appended = db.append([event(1)]);
  await realWorld.turn();
  world.advance(29_999);
  db.requireProgress();
  world.advance(1);
  assert.throws(
    () => db.requireProgress(),
    (error) => {
      assert(error instanceof StorageError);
      assert.match(error.message, /^the disk of the database has not answered for 30 s/);
      return true;
    },
  );
  other.exec('commit');
  await appended;
  db.requireProgress();
});

test('writes and events are rejected while the database file is replaced', async (t) => {
  const { db, path } = await opened(t);
  renameSync(path, `${path}.moved`);
  writeFileSync(path, '');
  for (const refused of [() => db.write(put('a', 1)), () => db.append([event(1)])]) {
    await assert.rejects(refused, (error) => {
      assert(error instanceof StorageError);
      assert.match(error.message, /^the database was replaced while it was open/);
      assert.match(error.hint ?? '', /Move the original file back/);
      return true;
    });
  }
  renameSync(`${path}.moved`, path);
  await db.write(put('b', 1));
  assert.deepEqual([await settingOf(db, 'a'), await settingOf(db, 'b')], [undefined, 1]);
});

test('close waits for pending writes and events, and later events are rejected', async (t) => {
  const path = join(tempDir(t), 'vault.db');
  const db = await bound(await Database.open(path, realWorld, { startThread: started }));
  const all = Promise.all([db.append([event(1)]), db.write(put('a', 1)), db.append([event(2)])]);
  await db.close();
  await all;
  const other = new BetterSqlite3(path, { readonly: true });
  t.after(() => other.close());
  assert.deepEqual(times(other), [1, 2]);
  await assert.rejects(db.append([event(3)]), StorageError);
});

test('the end of the writer thread rejects pending and later writes', async (t) => {
  const { db, other, thread } = await opened(t);
  other.exec('begin immediate');
  const waiting = [db.append([event(1)]), db.write(put('a', 1))].map((one) =>
    assert.rejects(one, /the thread that writes to the database has ended/),
  );
  await realWorld.turn();
  await thread.terminate();
  await Promise.all(waiting);
  await assert.rejects(db.write(put('b', 1)), StorageError);
  other.exec('rollback');
});

test('a database that the thread cannot open is rejected, and the thread ends', async (t) => {
  const thread = started();
  const ended = new Promise((resolve) => thread.once('exit', resolve));
  const path = join(tempDir(t), 'missing.db');
  await assert.rejects(ThreadConnection.open(thread, path, realWorld), /cannot open the database/);
  await ended;
});
