/** Names an API key as vaults did that accepted a name twice. */
import { outside } from './database/outside-database.ts';
import { ownRowsIn } from './database/own-rows.ts';

/** Gives a key of the vault in this directory a name that another key may have. */
export async function nameKeyAlike(dataDir: string, id: number, name: string): Promise<void> {
  outside(dataDir, (db) => db.prepare('update api_keys set name = ? where id = ?').run(name, id));
  await ownRowsIn(dataDir);
}
