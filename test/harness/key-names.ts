/** Names an API key as vaults did that accepted a name twice. */
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { ownRowsIn } from './own-rows.ts';

/** Gives a key of the vault in this directory a name that another key may have. */
export async function nameKeyAlike(dataDir: string, id: number, name: string): Promise<void> {
  const database = new BetterSqlite3(join(dataDir, 'vault.db'));
  database.prepare('update api_keys set name = ? where id = ?').run(name, id);
  database.close();
  await ownRowsIn(dataDir);
}
