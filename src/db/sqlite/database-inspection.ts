/**
 * Inspects a database file before it is opened for writing. A read-only connection leaves a log unchanged; a writing
 * one would checkpoint it into a file that may be damaged, and delete it.
 */
import { closeSync, lstatSync, openSync, readSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { OperatorError } from '../../base/operator-error.ts';
import type { HighWater } from '../tables/assigned-ids.ts';
import { companionsOf } from './database-files.ts';
import { lendDirectory } from './embedded-addon.ts';
import { afterInterruptedChange } from './interrupted-change.ts';
import { refuseLostLog } from './lost-log.ts';
import { leftLog, linkedPath, lostDatabaseAdvice } from './new-database.ts';
import { storageErrorFrom } from './storage-error.ts';

export type DatabaseInspection = HighWater & {
  /** Undefined if the database was last written by a vault that did not assign ids. */
  readonly vaultId: string | undefined;
  /** Whether a server has the database open, or was killed with it open. */
  readonly isServed: boolean;
  /** Whether it has, or may have, a write-ahead log. */
  readonly mayHaveLog: boolean;
  /** Whether Litestream replicates it; databases restored by Litestream never have a log. */
  readonly isReplicated: boolean;
  /**
   * How many times a log was checkpointed into the file (`Database.foldLog`), according to the file and its log
   * together.
   */
  readonly folds: number;
};

/** Bytes of a database file before its user version, a number of four bytes (sqlite.org/fileformat.html, 1.3). */
const userVersionAt = 60;

/**
 * How many times a log was checkpointed into the file, according to the file alone. Only for a process that does not
 * have the database open: closing the file drops the locks of SQLite.
 */
export function foldsInFile(path: string): number {
  const descriptor = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(4);
    readSync(descriptor, bytes, 0, bytes.length, userVersionAt);
    return bytes.readUInt32BE();
  } finally {
    closeSync(descriptor);
  }
}

/** Throws OperatorError if the path of the database, its log or its shared memory is not a regular file. */
export function refuseMisplacedFiles(path: string): void {
  for (const file of [path, ...companionsOf(linkedPath(path))]) {
    // A database may be a link to its file; SQLite follows no links for the other files.
    const stats = (file === path ? statSync : lstatSync)(file, { throwIfNoEntry: false });
    if (stats === undefined || stats.isFile()) continue;
    const kind = stats.isDirectory()
      ? 'a directory'
      : stats.isSymbolicLink()
        ? 'a symbolic link'
        : 'not a regular file';
    throw new OperatorError(`${file} is ${kind}; the database must be a regular file`, {
      hint:
        'Put the file there, or restore a backup into an empty directory: vault restore FILE --data-dir DIR\n' +
        '  To use another disk, move the whole data directory. Nothing was changed.',
    });
  }
}

/** Throws OperatorError if the file is a database without tables, or cannot be read. Changes nothing. */
export function refuseEmptyDatabase(path: string): void {
  reading(path, (database) => {
    const tables = database.prepare("select count(*) from sqlite_schema where type = 'table'").pluck().get();
    if (tables !== 0) return;
    const log = leftLog(path);
    const why = log === undefined ? 'its log is missing' : `its log ${log} does not belong to it`;
    throw new OperatorError(`the database ${path} has no tables; ${why}`, {
      hint: `${lostDatabaseAdvice(path)} A copy of a running vault also needs vault.db-wal.`,
    });
  });
}

/** Inspects a database that has tables. Throws StorageError if it cannot be read. */
export function inspectDatabase(path: string): DatabaseInspection {
  return reading(path, (database) => {
    const has = (table: string) =>
      database.prepare('select 1 from sqlite_schema where name = ?').get(table) !== undefined;
    const setting = (key: string) =>
      has('settings')
        ? database.prepare('select value from settings where key = ?').pluck().get(key)
        : undefined;
    const highest = (table: string) =>
      has('sqlite_sequence')
        ? Number(database.prepare('select seq from sqlite_sequence where name = ?').pluck().get(table) ?? 0)
        : 0;
    const id = setting('vault-id');
    return {
      vaultId: typeof id === 'string' ? id : undefined,
      isServed: setting('served-since') !== undefined,
      mayHaveLog: database.pragma('journal_mode', { simple: true }) === 'wal',
      isReplicated: has('_litestream_seq'),
      events: highest('audit_events'),
      versions: highest('certificate_versions'),
      folds: Number(database.pragma('user_version', { simple: true })),
    };
  });
}

/** At most `limit` names in this table, in order. Throws if there is no database. */
export function namesIn(path: string, table: string, limit: number): string[] {
  refuseLostLog(path);
  const database = new BetterSqlite3(path, { readonly: true, fileMustExist: true });
  try {
    return database.prepare(`select name from ${table} order by name limit ?`).pluck().all(limit) as string[];
  } finally {
    database.close();
  }
}

function reading<T>(path: string, look: (database: BetterSqlite3.Database) => T): T {
  refuseMisplacedFiles(path);
  lendDirectory(dirname(path));
  refuseLostLog(path);
  try {
    return afterInterruptedChange(path, () => {
      const database = new BetterSqlite3(path, { readonly: true, fileMustExist: true, timeout: 5000 });
      try {
        database.exec('begin');
        return look(database);
      } finally {
        database.close();
      }
    });
  } catch (error) {
    throw storageErrorFrom(error, path);
  }
}
