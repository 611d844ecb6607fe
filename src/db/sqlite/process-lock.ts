/**
 * Locks that show whether a process still runs: an empty file in the data directory that a process keeps locked,
 * through SQLite, until it ends. The kernel releases the lock even after kill -9, and it is visible to every container
 * on the host. The same kind of lock protects the database: if one fails, so does the other.
 */
import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';

const prefix = 'vault.lock-';

/** A lock of this process. */
export type ProcessLock = {
  /** Releases the lock and removes its file. */
  readonly release: () => void;
};

/** Creates and locks the file of a new `name`. Throws an error of the file system or of SQLite if that fails. */
export function takeProcessLock(directory: string, name: string): ProcessLock {
  const path = lockPath(directory, name);
  closeSync(openSync(path, 'wx', 0o600));
  let held: BetterSqlite3.Database | undefined;
  const release = () => {
    // Removed first: a file without a lock would mean that this process died.
    try {
      rmSync(path, { force: true });
    } catch {
      // On a disk that became read-only the file stays; it owns nothing, and the next server removes it.
    }
    held?.close();
  };
  try {
    held = new BetterSqlite3(path, { fileMustExist: true, timeout: 0 });
    // Avoids a second file for the journal.
    held.pragma('journal_mode = memory');
    held.exec('begin exclusive');
    return { release };
  } catch (error) {
    release();
    throw error;
  }
}

/** The locks that processes hold, including this one. */
export function heldLocks(directory: string): string[] {
  const abandoned = abandonedLocks(directory);
  return filesIn(directory)
    .filter((file) => file.startsWith(prefix))
    .map((file) => file.slice(prefix.length))
    .filter((name) => !abandoned.includes(name));
}

/** The locks that no process holds, and possibly one whose file was just created and is about to be locked. */
export function abandonedLocks(directory: string): string[] {
  return filesIn(directory)
    .filter((file) => file.startsWith(prefix) && isAbandoned(join(directory, file)))
    .map((file) => file.slice(prefix.length));
}

function filesIn(directory: string): string[] {
  try {
    // Only files: opening a pipe would wait for its other end.
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => entry.name);
  } catch {
    // No file descriptors left, for example: assume that all processes run.
    return [];
  }
}

/** Removes abandoned locks, if the file system allows it. Nothing is known about their processes afterwards. */
export function removeLocks(directory: string, names: readonly string[]): void {
  for (const name of names) {
    try {
      rmSync(lockPath(directory, name), { force: true });
    } catch {
      // A lock that stays is reported again; its process no longer owns anything.
    }
  }
}

function isAbandoned(path: string): boolean {
  let probe: BetterSqlite3.Database | undefined;
  try {
    probe = new BetterSqlite3(path, { readonly: true, timeout: 0 });
    probe.prepare('select count(*) from sqlite_schema').get();
    return true;
  } catch {
    // Held, missing or unreadable: assume that the process runs.
    return false;
  } finally {
    probe?.close();
  }
}

function lockPath(directory: string, name: string): string {
  return join(directory, prefix + name);
}
