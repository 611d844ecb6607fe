/**
 * A change to the file itself that a power failure interrupted: entering or leaving the mode with a write-ahead log.
 * Its journal is rolled back before anything is read, which a connection that only reads cannot do.
 */
import { openForWriting } from './write-connection.ts';

/**
 * Runs `read`, which opens the database at `path` for reading only; again, if an interrupted change had to be undone
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
