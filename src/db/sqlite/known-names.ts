/** Names for shell completion: read directly, without migrating or creating anything. */
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';

/** Kinds of names that commands accept. */
export const knownNames = ['certificates', 'issuers', 'dns-providers'] as const;

export type KnownNames = (typeof knownNames)[number];

/** At most a thousand names in the vault at this directory, in order. Throws if there is no vault. */
export function readKnownNames(dataDir: string, kind: KnownNames): string[] {
  const database = new BetterSqlite3(join(dataDir, 'vault.db'), { readonly: true, fileMustExist: true });
  try {
    const table = kind.replace('-', '_');
    return database.prepare(`select name from ${table} order by name limit 1000`).pluck().all() as string[];
  } finally {
    database.close();
  }
}
