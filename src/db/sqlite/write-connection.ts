/**
 * The interface of the writing connection, which runs on this thread (commands) or on its own (`vault serve`,
 * thread-connection.ts).
 */
import BetterSqlite3 from 'better-sqlite3';
import type { Integrity } from '../../base/integrity.ts';
import type { World } from '../../base/world.ts';
import type { ChainEnd } from '../audit/audit-chain.ts';
import type { NewAuditEvent } from '../audit/audit-insertion.ts';
import type { LogEnd } from '../audit/audit-mark.ts';
import { FileInPlace } from './file-in-place.ts';
import { LostLogError, saveLostLog } from './lost-log.ts';
import { SqliteStatements, type StatementResult } from './sqlite-statements.ts';
import { isBusy, storageErrorFrom } from './storage-error.ts';
import { emptyLog } from './write-ahead-log.ts';

/** Each method rejects with StorageError if SQLite or the disk fails. */
export type WriteConnection = {
  /** Begins a transaction and takes the write lock; waits up to 5 s for the lock of another process. */
  readonly begin: () => Promise<void>;
  readonly execute: (sql: string, values: readonly unknown[]) => Promise<StatementResult>;
  /** Resolves once the transaction is durable. */
  readonly commit: () => Promise<void>;
  /** Does nothing if SQLite has rolled back already. */
  readonly rollback: () => Promise<void>;
  /**
   * Adds audit events in their own transaction, or one shared with others, and resolves once they are durable. If
   * missing, an ordinary transaction does this. Returns the end of the audit log, which must still contain the event
   * `known`.
   */
  readonly append?: (
    events: readonly NewAuditEvent[],
    integrity: Integrity,
    known?: ChainEnd | undefined,
  ) => Promise<LogEnd>;
  /** Rejects if the database cannot be written. A lock held by another process is fine. */
  readonly requireWritable: () => Promise<void>;
  /** Checkpoints the write-ahead log; returns whether it is empty then. */
  readonly checkpoint: () => Promise<boolean>;
  /** How long the oldest request has waited for its response, in milliseconds; missing if none has to wait. */
  readonly waiting?: () => number;
  readonly close: () => Promise<void>;
};

/** How long all transactions together wait for the write lock of another process. */
const lockPatienceMs = 5000;
/** Pauses between attempts, which may block this thread briefly. */
const shortestPauseMs = 5;
const maxPauseMs = 40;

/** How long an attempt may block this thread; transactions wait asynchronously. */
const blockingPatienceMs = 10;

/** Long reads make the write-ahead log grow; afterward it is truncated to this size. Usually it has 4 MiB. */
const logSizeLimit = 8 * 1024 * 1024;

/** Per connection. Frequent results are cached above SQLite, and the rest is in the page cache of the system. */
const cacheKiB = 4000;

/** How long opening waits for another process that creates or migrates the database. */
export const openingPatienceMs = 5000;

/** A connection that writes to the file at `path`, which must exist. */
export function openForWriting(path: string): BetterSqlite3.Database {
  const database = new BetterSqlite3(path, { fileMustExist: true, timeout: openingPatienceMs });
  try {
    database.pragma('foreign_keys = on');
    database.pragma('synchronous = full');
    // Overwrites deleted data: a purge must not leave sealed keys in free parts of the file.
    database.pragma('secure_delete = on');
    database.pragma('trusted_schema = off');
    database.pragma('temp_store = memory');
    database.pragma(`cache_size = ${-cacheKiB}`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A connection that cannot write. */
export function openForReading(path: string): BetterSqlite3.Database {
  const database = new BetterSqlite3(path, { readonly: true, timeout: openingPatienceMs });
  database.pragma('query_only = on');
  database.pragma(`cache_size = ${-cacheKiB}`);
  return database;
}

/** Writes to an open database in the calling thread. */
export class DirectConnection implements WriteConnection {
  readonly #database: BetterSqlite3.Database;
  readonly #statements: SqliteStatements;
  readonly #world: Pick<World, 'now' | 'elapsed' | 'sleep'>;
  readonly #file: FileInPlace | undefined;
  // Time spent waiting for the lock since it was last acquired: later transactions do not restart the wait, or those
  // behind them would wait forever. Summed up, because a clock that is set back would make it endless.
  #lockedFor = 0;
  #lost: LostLogError | undefined;

  /**
   * With `file`, no transaction begins in a file that is no longer in place, and no commit to it is reported as
   * durable.
   */
  constructor(
    database: BetterSqlite3.Database,
    world: Pick<World, 'now' | 'elapsed' | 'sleep'>,
    file?: FileInPlace,
  ) {
    this.#database = database;
    this.#statements = new SqliteStatements(database);
    this.#world = world;
    this.#file = file;
  }

  /** From now on, locks of other processes block this thread for milliseconds only. */
  beImpatient(): void {
    this.#database.pragma(`busy_timeout = ${blockingPatienceMs}`);
    this.#database.pragma(`journal_size_limit = ${logSizeLimit}`);
  }

  /**
   * Rejects with StorageError if the file is no longer in place. If only its log is lost, saves that first, and rejects
   * with LostLogError from then on.
   */
  async requireInPlace(): Promise<void> {
    if (this.#lost !== undefined) throw this.#lost;
    try {
      this.#file?.require();
    } catch (error) {
      if (!(error instanceof LostLogError)) throw error;
      this.#lost = await saveLostLog(this.#database, error, this.#world);
      throw this.#lost;
    }
  }

  async begin(): Promise<void> {
    await this.requireInPlace();
    for (let pause = shortestPauseMs; ; pause = Math.min(2 * pause, maxPauseMs)) {
      const before = this.#world.elapsed();
      try {
        this.#statements.execute('begin immediate', []);
        this.#lockedFor = 0;
        return;
      } catch (error) {
        const { cause } = error as { cause?: unknown };
        if (!isBusy(cause) || this.#lockedFor >= lockPatienceMs) throw error;
        await this.#world.sleep(pause);
        this.#lockedFor += Math.max(pause, this.#world.elapsed() - before);
      }
    }
  }

  async execute(sql: string, values: readonly unknown[]): Promise<StatementResult> {
    return this.#statements.execute(sql, values);
  }

  async commit(): Promise<void> {
    this.#statements.execute('commit', []);
    await this.requireInPlace();
  }

  async rollback(): Promise<void> {
    // SQLite has already rolled back after a full disk or an I/O error; a second rollback would hide that error.
    if (this.#database.inTransaction) this.#statements.execute('rollback', []);
  }

  async requireWritable(): Promise<void> {
    await this.requireInPlace();
    try {
      // Changes no row but takes the write lock: a transaction alone would begin as a read.
      this.#database.exec('update settings set value = value where false');
    } catch (error) {
      if (!isBusy(error)) throw storageErrorFrom(error, this.#database.name);
    }
  }

  async checkpoint(): Promise<boolean> {
    await this.requireInPlace();
    if (emptyLog(this.#database)) return true;
    this.#database.pragma('wal_checkpoint(passive)');
    return false;
  }

  async close(): Promise<void> {
    this.#database.close();
  }
}

/**
 * Opens the file on the thread that writes. The main thread has migrated it and switched it to WAL mode, and keeps a
 * connection open. Throws StorageError.
 */
export function openInPlace(path: string, world: World): DirectConnection {
  try {
    const connection = new DirectConnection(openForWriting(path), world, new FileInPlace(path, world));
    connection.beImpatient();
    return connection;
  } catch (error) {
    throw storageErrorFrom(error, path);
  }
}
