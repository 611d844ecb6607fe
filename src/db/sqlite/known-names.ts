/** Reads names from a database file without opening the vault. */
import BetterSqlite3 from 'better-sqlite3';
import { refuseLostLog } from './lost-log.ts';

/** At most `limit` names in this table, in order. Throws if there is no database. */
export function namesIn(path: string, table: string, limit: number): string[] {
  refuseLostLog(path);
  const database = new BetterSqlite3(path, { readonly: true, fileMustExist: true });
  try {
    return database.prepare(`select name from ${table} order by name limit ?`).pluck().all(limit) as string[];
  } finally {
    database.close();
  }
}
