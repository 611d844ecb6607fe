/**
 * The vault's database: one connection that writes, one that only reads, and a generation number that tells caches when
 * this or another process changed their content.
 */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { Kysely, sql, type Transaction } from 'kysely';
import type { Integrity } from '../base/integrity.ts';
import { OperatorError } from '../base/operator-error.ts';
import type { World } from '../base/world.ts';
import { DatabaseFile } from './database-file.ts';
import type { Schema } from './schema/schema.ts';
import { copyDatabase } from './sqlite/backup-copy.ts';
import { refuseEmptyDatabase } from './sqlite/database-inspection.ts';
import { lendDirectory } from './sqlite/embedded-addon.ts';
import { FileInPlace } from './sqlite/file-in-place.ts';
import { type Migrations, migrate, refuseForeignDatabase } from './sqlite/migrations/migrations.ts';
import { createDatabase, hasContent } from './sqlite/new-database.ts';
import { sqliteDialect } from './sqlite/sqlite-dialect.ts';
import { damageIn, isBusy, storageErrorFrom } from './sqlite/storage-error.ts';
import { emptyLog, enterWal } from './sqlite/write-ahead-log.ts';

/** Executes reads: the reading connection, or the current transaction. */
export type Reader = Kysely<Schema>;

/** Executes writes: only `Database.write` provides one. */
export type Writer = Transaction<Schema> & {
  /** Tags what this transaction writes; undefined until the database is bound to its master key. */
  readonly integrity: Integrity | undefined;
};

/** Creates and checks the tags of rows. Throws if the master key has not been checked yet, which is a bug. */
export function requireIntegrity({ integrity }: { readonly integrity: Integrity | undefined }): Integrity {
  if (integrity === undefined) throw new Error('the database has no integrity key yet');
  return integrity;
}

/** A server checks files up to this size completely when it starts; larger ones would delay it. */
const checkedSize = 64 * 1024 * 1024;

/** Long reads make the write-ahead log grow; afterward it is truncated to this size. Usually it has 4 MiB. */
const logSizeLimit = 8 * 1024 * 1024;

/** Per connection. Frequent results are cached above SQLite, and the rest is in the page cache of the system. */
const cacheKiB = 4000;

/** How long opening waits for another process that creates or migrates the database. */
const openingPatienceMs = 5000;

/** How long a lock may block the event loop later; transactions wait without blocking it. */
const blockingPatienceMs = 10;

export class Database {
  readonly #file: FileInPlace;
  readonly #writing: BetterSqlite3.Database;
  readonly #reading: BetterSqlite3.Database;
  readonly #writer: Kysely<Schema>;
  readonly #dataVersion: BetterSqlite3.Statement;
  readonly #generation: BetterSqlite3.Statement;
  #seenDataVersion: unknown;
  #seenGeneration = -1;
  /** Set once the master key has opened the check blob, which contains its sealed key. */
  integrity: Integrity | undefined;
  /** For reads outside transactions; never sees uncommitted changes. */
  readonly reader: Reader;

  private constructor(
    writing: BetterSqlite3.Database,
    writer: Kysely<Schema>,
    world: World,
    file: FileInPlace,
  ) {
    this.#file = file;
    this.#writing = writing;
    this.#writer = writer;
    this.#reading = new BetterSqlite3(writing.name, { readonly: true, timeout: openingPatienceMs });
    this.#reading.pragma('query_only = on');
    this.#reading.pragma(`cache_size = ${-cacheKiB}`);
    this.reader = new Kysely<Schema>({ dialect: sqliteDialect(this.#reading, world) });
    this.#dataVersion = this.#reading.prepare('pragma data_version').pluck();
    this.#generation = this.#reading.prepare("select value from settings where key = 'generation'").pluck();
  }

  /**
   * Opens the database at `path`, creates it if it is missing (file mode 0600) and migrates it. On failure throws
   * StorageError or OperatorError and changes nothing.
   */
  static async open(path: string, world: World, migrations?: Migrations): Promise<Database> {
    try {
      lendDirectory(dirname(path));
      if (!hasContent(path)) {
        await createDatabase(path, world, async (draft) => {
          const db = await Database.#openFile(draft, world, 'empty', migrations);
          try {
            // close() does this too, but hides errors of the disk.
            emptyLog(db.#writing);
          } finally {
            await db.close();
          }
        });
      }
      return await Database.#openFile(path, world, 'filled', migrations);
    } catch (error) {
      throw storageErrorFrom(error, path);
    }
  }

  /** `content` is what the file must contain: tables, or nothing yet. */
  static async #openFile(
    path: string,
    world: World,
    content: 'filled' | 'empty',
    migrations?: Migrations,
  ): Promise<Database> {
    const { ino } = statSync(path);
    if (content === 'filled') refuseEmptyDatabase(path);
    const writing = new BetterSqlite3(path, { fileMustExist: true, timeout: openingPatienceMs });
    try {
      writing.pragma('foreign_keys = on');
      writing.pragma('synchronous = full');
      writing.pragma('trusted_schema = off');
      writing.pragma('temp_store = memory');
      writing.pragma(`cache_size = ${-cacheKiB}`);
      refuseForeignDatabase(writing, migrations);
      await enterWal(writing, openingPatienceMs, world);
      // From here on the file cannot be replaced; a restore may have replaced it before.
      if (statSync(path, { throwIfNoEntry: false })?.ino !== ino) throw replacedMeanwhile(path);
      const file = new FileInPlace(path, world);
      const writer = new Kysely<Schema>({ dialect: sqliteDialect(writing, world, file) });
      await migrate(writing, writer, migrations);
      writing.pragma(`busy_timeout = ${blockingPatienceMs}`);
      writing.pragma(`journal_size_limit = ${logSizeLimit}`);
      return new Database(writing, writer, world, file);
    } catch (error) {
      writing.close();
      throw error;
    }
  }

  /** The file in which the database is, and what lies beside it. */
  get file(): DatabaseFile {
    return new DatabaseFile(this.#reading.name);
  }

  /**
   * Runs `work` in one short transaction that holds the write lock from the beginning, and returns its result once the
   * transaction is durable. Await only queries in it: all other writes of the process wait meanwhile.
   */
  write<T>(work: (writer: Writer) => Promise<T>): Promise<T> {
    return this.#writer
      .transaction()
      .execute((writer) => work(Object.assign(writer, { integrity: this.integrity })));
  }

  /**
   * A number that increases with every committed change to certificates, CA certificates or the rights of API keys, by
   * any process. Costs 3 µs if nothing was committed since the last call.
   */
  async generation(): Promise<number> {
    try {
      this.#file.requireLately();
      const version = this.#dataVersion.get();
      if (version !== this.#seenDataVersion) {
        this.#seenGeneration = this.#generation.get() as number;
        this.#seenDataVersion = version;
      }
      return this.#seenGeneration;
    } catch (error) {
      throw storageErrorFrom(error, this.#reading.name);
    }
  }

  /** A number that changes whenever any process commits anything. */
  async commits(): Promise<number> {
    try {
      this.#file.requireLately();
      return this.#dataVersion.get() as number;
    } catch (error) {
      throw storageErrorFrom(error, this.#reading.name);
    }
  }

  /**
   * Throws StorageError if the database is not writable: SQLite also opens files that it can only read, and keeps doing
   * so even after they become writable. A lock held by another process is fine.
   */
  requireWritable(): void {
    try {
      // Changes no row but takes the write lock: a transaction alone would begin as a read.
      this.#writing.exec('update settings set value = value where false');
    } catch (error) {
      if (!isBusy(error)) throw storageErrorFrom(error, this.#writing.name);
    }
  }

  /** Checks a file of up to 64 MiB. Throws OperatorError if a page, an index or a table is damaged. */
  async check(): Promise<void> {
    if (statSync(this.#reading.name).size > checkedSize) return;
    let damage: string | undefined;
    try {
      damage = damageIn(this.#reading.prepare('pragma quick_check(3)').pluck().all());
    } catch (error) {
      throw storageErrorFrom(error, this.#reading.name);
    }
    if (damage === undefined) return;
    throw new OperatorError(`the database ${this.#reading.name} is damaged: ${damage}`, {
      hint: 'Nothing was changed. Keep a copy of the file, then restore the latest backup.',
    });
  }

  /** Numbers the file, checkpoints and truncates the log. Returns the number; undefined if others kept some of the log. */
  async foldLog(): Promise<number | undefined> {
    const number = await this.write(async (writer) => {
      const next = Number(this.#writing.pragma('user_version', { simple: true })) + 1;
      await sql.raw(`pragma user_version = ${next}`).execute(writer);
      return next;
    });
    if (emptyLog(this.#writing)) return number;
    this.#writing.pragma('wal_checkpoint(passive)');
    return undefined;
  }

  /** Waits for pending transactions and closes both connections. */
  async close(): Promise<void> {
    // Kysely lends its only connection to one user at a time: once we have it, all earlier transactions have finished.
    await this.#writer.connection().execute(async () => undefined);
    await this.reader.destroy();
    await this.#writer.destroy();
    this.#reading.close();
    this.#writing.close();
  }

  /**
   * Copies the committed state into the empty file `copy`, while requests are served and others write. Throws CopyError or
   * StorageError.
   */
  copyTo(copy: string): Promise<void> {
    return copyDatabase(this.#reading.name, copy);
  }
}

function replacedMeanwhile(path: string): OperatorError {
  return new OperatorError(`the database was replaced while the vault opened it (${path})`, {
    hint: 'A backup was restored at the same time. Start again.',
  });
}
