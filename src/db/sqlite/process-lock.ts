/**
 * Locks that say whether a process still runs: an empty file in the data directory that a process keeps locked, through SQLite,
 * until it ends. The kernel releases the lock even after kill -9, and shows it to every container on the machine. It is the
 * kind of lock that protects the database: where one fails, so does the other.
 */
import { closeSync, openSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { day } from '../../base/duration.ts';

const prefix = 'vault.lock-';

/** Locks of killed processes are removed after this long; a process locks its file milliseconds after creating it. */
const keptFor = day;

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
    // Removed first: without a file, nothing is known about the process, and its leases are left alone.
    rmSync(path, { force: true });
    held?.close();
  };
  try {
    held = new BetterSqlite3(path, { fileMustExist: true, timeout: 0 });
    // The journal would be a second file.
    held.pragma('journal_mode = memory');
    held.exec('begin exclusive');
    return { release };
  } catch (error) {
    release();
    throw error;
  }
}

/**
 * Whether the process that took the lock `name` has ended for certain. False if it runs, if it released the lock itself, or
 * if the file cannot be read.
 */
export function isAbandoned(directory: string, name: string): boolean {
  let probe: BetterSqlite3.Database | undefined;
  try {
    probe = new BetterSqlite3(lockPath(directory, name), { readonly: true, timeout: 0 });
    probe.prepare('select count(*) from sqlite_schema').get();
    return true;
  } catch {
    // Locked, missing or not readable: in doubt, the process runs.
    return false;
  } finally {
    probe?.close();
  }
}

/** Removes an abandoned lock. */
export function removeAbandoned(directory: string, name: string): void {
  rmSync(lockPath(directory, name), { force: true });
}

/** Removes abandoned locks that are more than a day old at `now`. */
export function removeOldLocks(directory: string, now: number): void {
  for (const file of readdirSync(directory).filter((one) => one.startsWith(prefix))) {
    const name = file.slice(prefix.length);
    const created = statSync(join(directory, file), { throwIfNoEntry: false })?.mtimeMs;
    if (created === undefined || created > now - keptFor) continue;
    if (isAbandoned(directory, name)) removeAbandoned(directory, name);
  }
}

function lockPath(directory: string, name: string): string {
  return join(directory, prefix + name);
}
