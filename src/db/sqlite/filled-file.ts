/** A new database file that is filled in one step and discarded if that fails. */
import { Kysely } from 'kysely';
import type { World } from '../../base/world.ts';
import type { WholeDatabase } from '../engine.ts';
import type { Schema } from '../schema/schema.ts';
import { describeErrors } from './backup-copy.ts';
import { sqliteDialect } from './sqlite-dialect.ts';
import { SqliteEngine } from './sqlite-engine.ts';
import { wholeSqlite } from './whole-database.ts';
import { openForWriting } from './write-connection.ts';

/**
 * Turns the empty file at `path` into a database, and fills it in one transaction. The caller makes it durable, and
 * removes it after a failure: there is no journal, which would take as much space again. Throws CopyError or
 * StorageError.
 */
export async function fillNewFile(
  path: string,
  world: World,
  fill: (writer: Kysely<Schema>, whole: WholeDatabase) => Promise<void>,
): Promise<void> {
  await describeErrors(path, async () => {
    const engine = await SqliteEngine.open(path, world);
    await engine.close();
    const database = openForWriting(path);
    try {
      database.pragma('journal_mode = delete');
      database.pragma('journal_mode = off');
      database.pragma('synchronous = off');
      const db = new Kysely<Schema>({ dialect: sqliteDialect(database, world) });
      await db.transaction().execute((writer) => fill(writer, wholeSqlite));
    } finally {
      database.close();
    }
  });
}
