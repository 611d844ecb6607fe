/**
 * SQLite operations for backups: a copy of the database while others write to it, and the examination of such a copy.
 */
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { CopyError } from '../copy-error.ts';
import type { MasterKeysTable } from '../schema/schema-master-keys.ts';
import { refuseDamaged } from './database-examination.ts';
import { appliedMigrations, refuseForeignDatabase } from './migrations.ts';
import { storageErrorFrom } from './storage-error.ts';

/** 1 MiB takes about a millisecond; the event loop runs in between. */
const pagesPerTurn = 256;

/** The contents of a copy. */
export type CopyFacts = {
  /** The applied migrations, oldest first. */
  readonly schema: readonly string[];
  /** Rows of each table. */
  readonly counts: Readonly<Record<string, number>>;
};

/** Errors that SQLite reports when it cannot write a copy. */
const cannotWrite = /^SQLITE_(FULL|READONLY|PERM|CANTOPEN|IOERR_(WRITE|FSYNC|TRUNCATE|DIR_FSYNC))/;

/**
 * Copies the committed state of the database at `path` into the empty file `copy`, a few pages at a time. Writers are
 * not blocked: the copy is a snapshot and never restarts. Throws CopyError or StorageError, or the system's error if
 * the directory cannot be reached.
 */
export async function copyDatabase(path: string, copy: string): Promise<void> {
  // better-sqlite3 reports every error here as a missing directory.
  await access(dirname(copy));
  await describeErrors(path, async () => {
    const source = new BetterSqlite3(path, { readonly: true, timeout: 5000 });
    try {
      // An open read transaction holds the snapshot; without it SQLite would restart at each write of another process.
      source.exec('begin');
      source.prepare('select count(*) from sqlite_schema').get();
      await source.backup(copy, { progress: () => pagesPerTurn });
    } finally {
      source.close();
    }
  });
}

/**
 * Turns a copy into a single plain file, deletes what must not be restored (sessions and setup links, including their
 * bytes), and returns its contents. Throws CopyError.
 */
export async function cleanCopy(copy: string): Promise<CopyFacts> {
  return describeErrors(copy, async () => {
    const database = new BetterSqlite3(copy, { fileMustExist: true });
    try {
      database.pragma('journal_mode = delete');
      database.pragma('journal_mode = memory');
      database.pragma('secure_delete = on');
      database.exec(
        "delete from sessions; delete from settings where key in ('setup-token-hash', 'setup-token-expires-at', 'setup-token-tag', 'served-since', 'served-by', 'served-settings')",
      );
      return factsOf(database);
    } finally {
      database.close();
    }
  });
}

/** The current master key of a copy, and whether the copy contains blobs of a previous key. */
export function masterKeysIn(copy: string): { current: string | undefined; isRotating: boolean } {
  const database = new BetterSqlite3(copy, { readonly: true });
  try {
    // The database of an open vault has this table: migrations run before any copy.
    const rows = database.prepare('select id, state from master_keys').all() as Pick<
      MasterKeysTable,
      'id' | 'state'
    >[];
    return {
      current: rows.find(({ state }) => state === 'current')?.id,
      isRotating: rows.some(({ state }) => state === 'previous'),
    };
  } finally {
    database.close();
  }
}

/**
 * Reads a complete copy and returns its contents. Throws OperatorError if it is damaged, not from a vault, or from a
 * newer vault; messages call it `name`. Writes nothing. Takes seconds for a large copy.
 */
export function examineCopy(copy: string, name: string): CopyFacts {
  const damaged = (findings: string, cause?: unknown) =>
    new OperatorError(`${name} is damaged: ${findings}`, { hint: 'Use another backup.', cause });
  let database: BetterSqlite3.Database | undefined;
  try {
    database = new BetterSqlite3(copy, { readonly: true });
    refuseForeignDatabase(database);
    refuseDamaged(database, damaged);
    return factsOf(database);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw damaged(describeSystemError(error), error);
  } finally {
    database?.close();
  }
}

function factsOf(database: BetterSqlite3.Database): CopyFacts {
  const tables = database
    .prepare(
      "select name from sqlite_schema where type = 'table' and name not like 'sqlite%' and name not like 'kysely%' order by name",
    )
    .pluck()
    .all() as string[];
  const count = (table: string) =>
    database
      .prepare(`select count(*) from "${table.replaceAll('"', '""')}"`)
      .pluck()
      .get() as number;
  return {
    schema: appliedMigrations(database),
    counts: Object.fromEntries(tables.map((table) => [table, count(table)])),
  };
}

/**
 * Runs `work` on the copy at `path`. Throws CopyError if the copy cannot be written or a disk fails, otherwise
 * StorageError.
 */
export async function describeErrors<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code } = ((error as Error).cause ?? error) as { code?: unknown };
    if (cannotWrite.test(String(code)))
      throw new CopyError(error, code === 'SQLITE_FULL' ? 'full' : 'not writable');
    if (String(code).startsWith('SQLITE_IOERR')) throw new CopyError(error, 'unclear');
    throw storageErrorFrom(error, path);
  }
}
