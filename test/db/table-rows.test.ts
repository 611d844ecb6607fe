/** All rows of a database, whatever their number and size, between both engines. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Kysely, sql } from 'kysely';
import type { Json } from '../../src/base/json.ts';
import { Database } from '../../src/db/database.ts';
import { storedValue } from '../../src/db/engine-sql.ts';
import type { Schema } from '../../src/db/schema/schema.ts';
import { SqliteEngine } from '../../src/db/sqlite/sqlite-engine.ts';
import { copyRows, differingTables, digestRows } from '../../src/db/table-rows.ts';
import { needsPostgres } from '../harness/postgres/binaries.ts';
import { postgresServer } from '../harness/postgres/postgres.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { TestWorld } from '../harness/test-world.ts';

const world = new TestWorld();

async function newFile(t: TestContext, name = 'vault.db'): Promise<Database> {
  const db = await Database.open(join(tempDir(t), name), world);
  t.after(() => db.close());
  return db;
}

async function newServer(t: TestContext): Promise<Database> {
  const url = await (await postgresServer()).createDatabase();
  const db = await Database.connect(url, { world, directory: tempDir(t), connections: 1 });
  t.after(() => db.close());
  return db;
}

/** Adds notifications with data of this many characters. */
async function notify(db: Database, count: number, length: number): Promise<void> {
  await db.write(async (writer) => {
    for (let n = 0; n < count; n += 1) {
      const message_id = `${length}-${n}`;
      const row = { message_id, event: 'test', at: n, about: null, data: 'ß'.repeat(length) as Json<never> };
      await writer.insertInto('notifications').values(row).execute();
    }
  });
}

async function copied(from: Database, to: Database): Promise<void> {
  const read = await from.write((reader) => to.write((writer) => copyRows(reader, writer, world)));
  assert.deepEqual(await digestRows(from.reader, world), read);
  assert.deepEqual(await digestRows(to.reader, world), read);
}

test(
  'copyRows keeps values of every type between both engines and replaces existing rows',
  needsPostgres(),
  async (t) => {
    const [from, server, back] = [await newFile(t), await newServer(t), await newFile(t)];
    await notify(from, 1001, 3);
    await from.write(async (writer) => {
      const put = (key: string, value: string | number | Buffer) =>
        writer
          .insertInto('settings')
          .values({ key, value: storedValue(value) })
          .execute();
      await put('text', '1');
      await put('empty', '');
      await put('number', 1);
      await put('largest', Number.MAX_SAFE_INTEGER);
      await put('negative', -1);
      await put('bytes', Buffer.from([0, 255, 1]));
      await put('json', '{"bytes":"00"}');
      await put('quotes', '\\ \' " é \u{1f512} \n');
      const hold = { directory_url: 'u', scope: 'names', until: 1, reason: '' } as const;
      for (const subject of ['b', 'a', 'Ä', 'B', 'ab']) {
        await writer
          .insertInto('issuance_holds')
          .values({ ...hold, subject })
          .execute();
      }
    });
    await notify(server, 5, 9);
    await copied(from, server);
    await copied(server, back);
    const settings = (db: Database) => db.reader.selectFrom('settings').selectAll().orderBy('key').execute();
    assert.deepEqual(await settings(back), await settings(from));
    assert.deepEqual(await settings(server), await settings(from));
  },
);

test('differingTables lists a table with text that the target cannot store', needsPostgres(), async (t) => {
  const [from, server] = [await newFile(t), await newServer(t)];
  await notify(from, 3, 3);
  await from.write((writer) =>
    writer
      .updateTable('notifications')
      .set({ data: 'a\0b' as Json<never> })
      .where('id', '=', 2)
      .execute(),
  );
  const read = await server.write((writer) => copyRows(from.reader, writer, world));
  assert.deepEqual(differingTables(read, await digestRows(server.reader, world)), ['notifications']);
});

test('rows are read in batches, smaller ones for long rows, with turns for other work between them', async (t) => {
  const path = join(tempDir(t), 'vault.db');
  const db = await Database.open(path, world);
  await notify(db, 1000, 3);
  await notify(db, 100, 1_000_000);
  await db.close();
  const engine = await SqliteEngine.open(path, world);
  t.after(() => engine.close());
  const limits: number[] = [];
  const reader = new Kysely<Schema>({
    dialect: engine.reading,
    log: ({ query }) => {
      limits.push(Number(/from "notifications".* limit (\d+)/s.exec(query.sql)?.[1] ?? 0));
    },
  });
  let turns = 0;
  await digestRows(reader, {
    turn: async () => {
      turns += 1;
    },
  });
  const portions = limits.filter((limit) => limit > 0);
  assert.equal(Math.max(...portions), 64);
  assert.ok(portions.filter((limit) => limit <= 3).length > 3, `${portions}`);
  assert.ok(turns >= portions.length);
  const { rows } = await sql<{ n: number }>`select count(*) as n from notifications`.execute(reader);
  assert.deepEqual(rows, [{ n: 1100 }]);
});
