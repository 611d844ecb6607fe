/** Takes a database away from everybody, so that another can take its place. */
import BetterSqlite3 from 'better-sqlite3';
import { OperatorError } from '../../base/operator-error.ts';
import { isBusy } from '../storage-error.ts';

/** A database that nobody else can open. */
export type HeldDatabase = {
  /** `damaged` where SQLite cannot read it; its -wal and -shm are then as they were found. */
  readonly state: 'whole' | 'damaged';
  /** Lets others in again. */
  readonly release: () => void;
};

/**
 * Locks the database and folds its write-ahead log in, so that the one file is all of it. Throws OperatorError where
 * another process has it open, having changed nothing.
 */
export function holdDatabase(path: string): HeldDatabase {
  let database: BetterSqlite3.Database | undefined;
  try {
    lookAt(path);
    database = new BetterSqlite3(path, { fileMustExist: true, timeout: 250 });
    // Whoever has it open in the mode of the vault holds a lock that makes this fail.
    database.pragma('journal_mode = delete');
    database.exec('begin exclusive');
    // In between somebody may have come and gone back to the vault's mode, in which this lock lets readers in.
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

/** Reading alone changes nothing; a writing connection would fold a log into what may be beyond repair, and remove it. */
function lookAt(path: string): void {
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
