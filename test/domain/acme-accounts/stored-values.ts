/** All that the database of a vault stores, to be searched for what must not be there. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { outside } from '../../harness/database/outside-database.ts';
import { databaseOf } from '../../harness/database/tested-engine.ts';

const tables = "select tablename from pg_tables where schemaname = 'public'";

/** The contents of the files of the vault except its master key, and on a server each value of each table. */
export function storedValues(dataDir: string): Buffer[] {
  const names = readdirSync(dataDir).filter((name) => name !== 'master.key');
  const files = names.map((name) => readFileSync(join(dataDir, name)));
  if (databaseOf(dataDir) === undefined) {
    if (!names.includes('vault.db')) throw new Error(`no database in ${dataDir}`);
    return files;
  }
  const rows = outside(dataDir, (db) =>
    (db.prepare(tables).pluck().all() as string[]).flatMap((table) =>
      db.prepare(`select * from ${table}`).raw().all(),
    ),
  ) as unknown[][];
  if (rows.length === 0) throw new Error(`nothing in the database of ${dataDir}`);
  return [
    ...files,
    ...rows.flat().map((value) => (Buffer.isBuffer(value) ? value : Buffer.from(String(value)))),
  ];
}
