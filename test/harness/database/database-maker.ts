/** A database without a vault, of the engine that is tested. */
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { World } from '../../../src/base/world.ts';
import { Database } from '../../../src/db/database.ts';
import { tempDir } from '../temp-dir.ts';
import { TestWorld } from '../test-world.ts';
import { ensureDatabase } from './tested-engine.ts';

export type MadeDatabase = {
  readonly db: Database;
  /** Names it, for `openDatabase` and `outside`. */
  readonly dataDir: string;
};

/** A new database, which closes when the test ends. */
export async function makeDatabase(t: Pick<TestContext, 'after'>): Promise<MadeDatabase> {
  const dataDir = tempDir(t);
  const db = await openDatabase(dataDir, new TestWorld());
  t.after(() => db.close());
  return { db, dataDir };
}

/** Opens the database of this directory once more, or a new one. The caller closes it. */
export async function openDatabase(dataDir: string, world: World): Promise<Database> {
  const url = await ensureDatabase(dataDir);
  if (url === undefined) return Database.open(join(dataDir, 'vault.db'), world);
  return Database.connect(url, { world, directory: dataDir, environment: {}, home: undefined });
}
