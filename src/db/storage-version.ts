/** Which storage this executable works with. */
import { schemaVersion } from './sqlite/migrations/migrations.ts';
import { sqliteVersion } from './sqlite/sqlite-version.ts';

/** The version of the embedded SQLite, and the name of the newest schema. */
export function storageVersion(): { readonly sqlite: string; readonly schema: string } {
  return { sqlite: sqliteVersion(), schema: schemaVersion };
}
