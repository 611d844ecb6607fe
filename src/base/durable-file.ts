/** Files that must survive the loss of power: a new name is durable only when its directory is. */
import { closeSync, fsyncSync, openSync, rmSync } from 'node:fs';

/** Makes the content of a file, or the names in a directory, durable. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Removes a database that nobody uses, with what SQLite may have left beside it. */
export function removeDatabase(path: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true });
}
