/** Locks a database exclusively, so that it can be replaced. */
import BetterSqlite3 from 'better-sqlite3';
import { OperatorError } from '../../base/operator-error.ts';
import { afterInterruptedChange } from './interrupted-change.ts';
import { refuseLostLog } from './lost-log.ts';
import { isBusy } from './storage-error.ts';

/** A database that no other process can open. */
export type HeldDatabase = {
  /** `damaged` if SQLite cannot read it; its -wal and -shm are then left unchanged. */
  readonly state: 'whole' | 'damaged';
  /** Releases the lock. */
  readonly release: () => void;
};

/**
 * Locks the database and checkpoints its write-ahead log, so that the file alone is complete. Throws OperatorError if
 * another process has it open; nothing is changed then.
 */
export function holdDatabase(path: string): HeldDatabase {
  let database: BetterSqlite3.Database | undefined;
  refuseLostLog(path);
  try {
    afterInterruptedChange(path, () => tryReading(path));
    database = new BetterSqlite3(path, { fileMustExist: true, timeout: 250 });
    // Any process that has it open in WAL mode holds a lock that makes this fail.
    database.pragma('journal_mode = delete');
    database.exec('begin exclusive');
    // Meanwhile another process may have switched back to WAL mode, in which this lock does not exclude readers.
    if (database.pragma('journal_mode', { simple: true }) !== 'delete') throw inUse(path);
    const held = database;
    return { state: 'whole', release: () => held.close() };
  } catch (error) {
    database?.close();
    if (error instanceof OperatorError) throw error;
    if (isBusy(error)) throw inUse(path, error);
    if (/^SQLITE_(CORRUPT|NOTADB|FORMAT|IOERR)/.test(String((error as { code?: unknown }).code))) {
      return { state: 'damaged', release: () => undefined };
    }
    throw error;
  }
}

/**
 * Reading changes nothing; a writing connection would checkpoint a log into a file that may be beyond repair, and
 * delete it.
 */
function tryReading(path: string): void {
  const database = new BetterSqlite3(path, { readonly: true, timeout: 250 });
  try {
    database.prepare('select count(*) from sqlite_schema').get();
  } finally {
    database.close();
  }
}

function inUse(path: string, cause?: unknown): OperatorError {
  return new OperatorError(`the vault is running: another process uses ${path}`, {
    hint: 'Stop "vault serve" and other vault commands first. Nothing was changed.',
    cause,
  });
}
