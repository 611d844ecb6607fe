/**
 * What a database file says of itself before it is opened for writing. A connection that reads alone leaves a log as it is;
 * one that writes would fold it into a file that may be beyond repair, and delete it.
 */
import BetterSqlite3 from 'better-sqlite3';
import { OperatorError } from '../base/operator-error.ts';
import { leftLog, lostDatabaseAdvice } from './new-database.ts';
import type { SettingKey } from './settings.ts';
import { storageErrorFrom } from './storage-error.ts';

/** The highest ids that tables have given out, also for rows that are gone: they only ever grow. */
export type HighWater = { readonly events: number; readonly versions: number };

export type DatabaseSight = HighWater & {
  /** Undefined where a vault that gave no ids has written the database last. */
  readonly vaultId: string | undefined;
  /** Whether a server has the database open, or was killed while it had. */
  readonly isServed: boolean;
  /** Whether it has, or may have, a write-ahead log that belongs to it. */
  readonly mayHaveLog: boolean;
  /** Whether Litestream follows it, whose restored databases never have a log. */
  readonly isReplicated: boolean;
};

/** Throws OperatorError where the file is a database without any table, or cannot be read. Changes nothing. */
export function refuseEmptyDatabase(path: string): void {
  reading(path, (database) => {
    const tables = database.prepare("select count(*) from sqlite_schema where type = 'table'").pluck().get();
    if (tables !== 0) return;
    const log = leftLog(path);
    const why = log === undefined ? 'its log is missing' : `its log ${log} does not belong to it`;
    throw new OperatorError(`the database ${path} holds no vault: it has no tables, as where ${why}`, {
      hint: `${lostDatabaseAdvice(path)} A copy of a running vault needs vault.db-wal too.`,
    });
  });
}

/** Looks at a database that has tables. Throws StorageError where it cannot be read. */
export function lookAtDatabase(path: string): DatabaseSight {
  return reading(path, (database) => {
    const has = (table: string) =>
      database.prepare('select 1 from sqlite_schema where name = ?').get(table) !== undefined;
    const setting = (key: SettingKey) =>
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
    };
  });
}

function reading<T>(path: string, look: (database: BetterSqlite3.Database) => T): T {
  let database: BetterSqlite3.Database | undefined;
  try {
    database = new BetterSqlite3(path, { readonly: true, fileMustExist: true, timeout: 5000 });
    database.exec('begin');
    return look(database);
  } catch (error) {
    throw storageErrorFrom(error, path);
  } finally {
    database?.close();
  }
}
