/** Names for the completion of shells: read at once, without migrating or making anything. */
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';

/** What has names that commands take. */
export const knownNames = ['certificates', 'issuers', 'dns-providers'] as const;

export type KnownNames = (typeof knownNames)[number];

/** At most a thousand names of the vault in the directory, in order. Throws where there is none. */
export function readKnownNames(dataDir: string, kind: KnownNames): string[] {
  const database = new BetterSqlite3(join(dataDir, 'vault.db'), { readonly: true, fileMustExist: true });
  try {
    const table = kind.replace('-', '_');
    return database.prepare(`select name from ${table} order by name limit 1000`).pluck().all() as string[];
  } finally {
    database.close();
  }
}
