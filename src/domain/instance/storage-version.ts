/** Which storage this executable works with: the SQLite in it, and the newest schema that it knows. */
import { storageVersion as versionOfStorage } from '../../db/storage-version.ts';

/** The version of SQLite, and that of the schema. */
export function storageVersion(): ReturnType<typeof versionOfStorage> {
  return versionOfStorage();
}
