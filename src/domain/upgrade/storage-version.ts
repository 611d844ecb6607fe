/** Which storage this executable works with: the SQLite in it, and the newest schema that it knows. */
import { schemaVersion } from '../../db/sqlite/migrations/migrations.ts';
import { sqliteVersion } from '../../db/sqlite/sqlite-version.ts';

/** The version of SQLite, and that of the schema. */
export function storageVersion(): { readonly sqlite: string; readonly schema: typeof schemaVersion } {
  return { sqlite: sqliteVersion(), schema: schemaVersion };
}
