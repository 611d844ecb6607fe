/**
 * A database whose file is moved, replaced or removed while it is open: nothing is read from it or said to be stored
 * there.
 */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { StorageError } from '../../../src/base/storage-error.ts';
import { Database, type Writer } from '../../../src/db/database.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

async function opened(t: TestContext) {
  const world = new TestWorld();
  const dir = join(tempDir(t), 'data');
  const path = join(dir, 'vault.db');
  const db = await Database.open(path, world);
  t.after(() => db.close());
  return { db, world, dir, path };
}

const add = (key: string) => (writer: Writer) =>
  writer.insertInto('settings').values({ key, value: 1 }).execute();

const asks = [(db: Database) => db.generation(), (db: Database) => db.commits()];

async function assertRefused(db: Database, message: RegExp): Promise<void> {
  for (const work of [...asks, (all: Database) => all.write(add('lost'))]) {
    await assert.rejects(work(db), (error) => {
      assert(error instanceof StorageError);
      assert.match(error.message, message);
      assert.match(error.hint ?? '', /Move the original file back/);
      return true;
    });
  }
}

const troubles: Record<string, (paths: { dir: string; path: string }) => () => void> = {
  'moved away': ({ path }) => {
    renameSync(path, `${path}.elsewhere`);
    return () => renameSync(`${path}.elsewhere`, path);
  },
  'moved away with its directory': ({ dir }) => {
    renameSync(dir, `${dir}.elsewhere`);
    return () => renameSync(`${dir}.elsewhere`, dir);
  },
  replaced: ({ path }) => {
    renameSync(path, `${path}.elsewhere`);
    copyFileSync(`${path}.elsewhere`, path);
    return () => renameSync(`${path}.elsewhere`, path);
  },
  'replaced by a directory': ({ path }) => {
    renameSync(path, `${path}.elsewhere`);
    mkdirSync(path);
    return () => {
      rmSync(path, { recursive: true });
      renameSync(`${path}.elsewhere`, path);
    };
  },
};

for (const [trouble, begin] of Object.entries(troubles)) {
  test(`a database that was ${trouble} rejects reads and writes until it is back`, async (t) => {
    const { db, world, dir, path } = await opened(t);
    await db.generation();
    const end = begin({ dir, path });
    // Reads rely for a moment on the last look; writes never do.
    world.advance(100);
    await assertRefused(db, /^the database was (removed or moved|replaced) while it was open \(/);
    end();
    for (const ask of asks) await ask(db);
    await db.write(add('kept'));
    const rows = await db.reader
      .selectFrom('settings')
      .select('key')
      .where('key', '!=', 'generation')
      .execute();
    assert.deepEqual(rows, [{ key: 'kept' }]);
  });
}

test('a write is rejected if the database is moved before its end', async (t) => {
  const { db, path } = await opened(t);
  const writing = db.write(async (writer) => {
    await add('lost')(writer);
    renameSync(path, `${path}.elsewhere`);
  });
  await assert.rejects(writing, StorageError);
  renameSync(`${path}.elsewhere`, path);
  await db.write(add('kept'));
});

test('a database whose directory was replaced by a file is rejected until the directory is back', async (t) => {
  const { db, world, dir } = await opened(t);
  renameSync(dir, `${dir}.elsewhere`);
  copyFileSync(join(`${dir}.elsewhere`, 'vault.db'), dir);
  world.advance(100);
  await assert.rejects(db.generation(), StorageError);
  rmSync(dir);
  renameSync(`${dir}.elsewhere`, dir);
  await db.generation();
});
