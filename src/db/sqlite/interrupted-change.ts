/**
 * Recovers from a power failure while a database entered or left WAL mode. The journal of that change must be rolled
 * back before anything is read, which a read-only connection cannot do.
 */
import { openForWriting } from './write-connection.ts';

/**
 * Runs `read`, which opens the database at `path` read-only. Retries it if an interrupted change had to be undone
 * first.
 */
export function afterInterruptedChange<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'SQLITE_READONLY_ROLLBACK') throw error;
    undoChange(path);
    return read();
  }
}

function undoChange(path: string): void {
  const database = openForWriting(path);
  try {
    database.prepare('select count(*) from sqlite_schema').get();
  } finally {
    database.close();
  }
}
