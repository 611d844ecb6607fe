/** Files that are no database of this vault: each is refused with a sentence and a hint, and stays byte for byte. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { sql } from 'kysely';
import { OperatorError } from '../../src/base/operator-error.ts';
import { StorageError } from '../../src/base/storage-error.ts';
import { Database } from '../../src/db/database.ts';
import { migrations } from '../../src/db/sqlite/migrations.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { TestWorld } from '../harness/test-world.ts';

const world = new TestWorld();

/** A closed database of a few hundred kilobytes, all of it in the file and nothing in its log. */
async function filledDatabase(t: TestContext): Promise<string> {
  const path = join(tempDir(t), 'vault.db');
  const db = await Database.open(path, world);
  await db.write(async (writer) => {
    for (let n = 0; n < 500; n += 1) {
      const row = {
        at: n,
        actor: 'system',
        action: 'test',
        resource: 'x'.repeat(500),
        detail: '{}',
        link: Buffer.alloc(0),
      };
      await writer.insertInto('audit_events').values(row).execute();
    }
  });
  await db.close();
  return path;
}

/** Asserts that opening and reading through the file is refused like this, and leaves it as it is. */
async function assertRefused(path: string, kind: typeof OperatorError, message: RegExp): Promise<void> {
  const before = readFileSync(path);
  await assert.rejects(
    async () => {
      const db = await Database.open(path, world);
      await db.check().finally(() => db.close());
    },
    (error) => {
      assert(error instanceof kind, String(error));
      assert.match(error.message, message);
      assert(error.message.includes(path));
      assert(error.hint);
      return true;
    },
  );
  assert.deepEqual(readFileSync(path), before);
}

test('a database of a newer vault is rejected with the name of its migration', async (t) => {
  const path = join(tempDir(t), 'vault.db');
  const later = { up: async () => undefined };
  const newer = await Database.open(path, world, { migrations: { ...migrations, '0099-later': later } });
  await newer.close();
  await assertRefused(path, OperatorError, /written by a newer vault \(its schema has 0099-later\)/);
});

test("another program's database is rejected", async (t) => {
  const path = join(tempDir(t), 'vault.db');
  const foreign = new BetterSqlite3(path);
  foreign.exec('create table bookmarks (url text)');
  foreign.close();
  await assertRefused(path, OperatorError, /is a database of another program/);
});

test("another program's database is distinguished from a newer vault's, even if it was migrated with Kysely", async (t) => {
  const path = join(tempDir(t), 'vault.db');
  const foreign = new BetterSqlite3(path);
  foreign.exec(
    "create table kysely_migration (name text); insert into kysely_migration values ('2024-init')",
  );
  foreign.close();
  await assertRefused(path, OperatorError, /is a database of another program/);
});

test('a file that is not a database is rejected', async (t) => {
  const path = join(tempDir(t), 'vault.db');
  writeFileSync(path, 'this is not a database\n'.repeat(500));
  await assertRefused(path, StorageError, /is damaged, or the file is not a database/);
});

test('a file that is too short to be a database is rejected', async (t) => {
  const path = join(tempDir(t), 'vault.db');
  writeFileSync(path, 'SQLite format 3\0');
  await assertRefused(path, StorageError, /is damaged, or the file is not a database/);
});

for (const [part, share] of [
  ['half', 0.5],
  ['99%', 0.99],
] as const) {
  test(`a database truncated to ${part} is rejected`, async (t) => {
    const path = await filledDatabase(t);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, Math.floor(bytes.length * share)));
    await assertRefused(path, OperatorError, /is damaged/);
  });
}

test('a database with a damaged page in the middle is rejected by the check', async (t) => {
  const path = await filledDatabase(t);
  const bytes = readFileSync(path);
  const middle = Math.floor(bytes.length / 2 / 4096) * 4096;
  bytes.fill(0xff, middle, middle + 4096);
  writeFileSync(path, bytes);
  await assertRefused(path, OperatorError, /is damaged/);
});

test('a query that reads a damaged page is rejected with the error about damage', async (t) => {
  const path = await filledDatabase(t);
  const bytes = readFileSync(path);
  // The schema is in the first pages, the rows are in the last.
  bytes.fill(0xff, Math.floor((bytes.length * 0.8) / 4096) * 4096);
  writeFileSync(path, bytes);
  const db = await Database.open(path, world);
  t.after(() => db.close());
  await assert.rejects(sql`select count(detail) from audit_events`.execute(db.reader), (error) => {
    assert(error instanceof StorageError);
    assert.match(error.message, /is damaged, or the file is not a database/);
    return true;
  });
});

test('an intact database passes the check', async (t) => {
  const db = await Database.open(await filledDatabase(t), world);
  t.after(() => db.close());
  await db.check();
});
