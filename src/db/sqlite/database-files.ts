/** The files of a database: the main file, and SQLite's -wal, -shm and -journal. */
import { removeFile } from '../../base/durable-file.ts';

/** The database of a data directory. Drafts and copies next to it have longer names. */
export const databaseName = 'vault.db';

/** The write-ahead log of the database at `path`. */
export function logOf(path: string): string {
  return `${path}-wal`;
}

/** The shared memory of the processes that have the database at `path` open: the index of its log, and their locks. */
export function sharedMemoryOf(path: string): string {
  return `${path}-shm`;
}

/** The other files of the database at `path`; not all of them exist. */
export function companionsOf(path: string): string[] {
  return [logOf(path), sharedMemoryOf(path), `${path}-journal`];
}

/** Removes an unused database with all its files. */
export function removeDatabase(path: string): void {
  for (const file of [path, ...companionsOf(path)]) removeFile(file);
}
