/**
 * The vault's database: one connection that writes, one that only reads, and a generation by which caches notice that
 * somebody, in this process or another, changed what they hold.
 */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { Kysely, sql, type Transaction } from 'kysely';
import type { Integrity } from '../base/integrity.ts';
import { OperatorError } from '../base/operator-error.ts';
import type { World } from '../base/world.ts';
import { type Migrations, migrate, refuseForeignDatabase } from './migrations/migrations.ts';
import type { Schema } from './schema/schema.ts';
import { refuseEmptyDatabase } from './sqlite/database-inspection.ts';
import { lendDirectory } from './sqlite/embedded-addon.ts';
import { FileInPlace } from './sqlite/file-in-place.ts';
import { createDatabase, hasContent } from './sqlite/new-database.ts';
import { sqliteDialect } from './sqlite/sqlite-dialect.ts';
import { emptyLog, enterWal } from './sqlite/write-ahead-log.ts';
import { damageIn, isBusy, storageErrorFrom } from './storage-error.ts';

/** What reading queries run on: the reading connection, or the transaction that is under way. */
export type Reader = Kysely<Schema>;

/** What writing queries run on: only `Database.write` has one to give. */
export type Writer = Transaction<Schema> & {
  /** Tags what this transaction writes; undefined until the database is bound to its master key. */
  readonly integrity: Integrity | undefined;
};

/** What tags rows and tells whether they are the vault's own. Throws where the master key has not been checked yet, which is a bug. */
export function requireIntegrity({ integrity }: { readonly integrity: Integrity | undefined }): Integrity {
  if (integrity === undefined) throw new Error('the database is not bound to its master key yet');
  return integrity;
}

/** Up to this size the whole file is checked when a server starts; larger ones would delay it. */
const checkedSize = 64 * 1024 * 1024;

/** Who reads for long makes the write-ahead log grow; afterwards it is cut to this. Usually it has 4 MiB. */
const logSizeLimit = 8 * 1024 * 1024;

/** Of each connection. What is asked often is remembered above SQLite, and the rest is in the memory of the system. */
const cacheKiB = 4000;

/** While it opens, a database may wait for another process that makes or migrates it. */
const openingPatienceMs = 5000;

/** Later a lock may block the event loop only this long; transactions wait for theirs without blocking it. */
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
  /** Set once the master key has opened the check blob, in which the key of it is sealed. */
  integrity: Integrity | undefined;
  /** Outside transactions. It never sees what a transaction under way has not committed. */
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
   * Opens the database at `path`, makes it where it is missing (file mode 0600) and migrates it. Throws StorageError or
   * OperatorError, having changed nothing, where that is not possible.
   */
  static async open(path: string, world: World, migrations?: Migrations): Promise<Database> {
    try {
      lendDirectory(dirname(path));
      if (!hasContent(path)) {
        await createDatabase(path, world, async (draft) => {
          const db = await Database.#openFile(draft, world, 'empty', migrations);
          try {
            // Closing does it too, but keeps it to itself when the disk fails.
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

  /** `content` is what the file must have: tables, or nothing yet. */
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

  /** The file. Never open and close it by other means than SQLite: that would drop the locks of this process. */
  get path(): string {
    return this.#reading.name;
  }

  /**
   * Runs `work` in one short transaction that holds the write lock from its beginning, and returns what it returns once
   * that is durable. Await nothing in it but queries: every other write of the process waits meanwhile.
   */
  write<T>(work: (writer: Writer) => Promise<T>): Promise<T> {
    return this.#writer
      .transaction()
      .execute((writer) => work(Object.assign(writer, { integrity: this.integrity })));
  }

  /**
   * A number that moves on with every committed change to certificates, authorities or the rights of API keys, whoever
   * made it. Costs 3 µs where nothing was committed since the last look.
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

  /** Another number whenever anything was committed, by any process. */
  async commits(): Promise<number> {
    try {
      this.#file.requireLately();
      return this.#dataVersion.get() as number;
    } catch (error) {
      throw storageErrorFrom(error, this.#reading.name);
    }
  }

  /**
   * Throws StorageError where nothing can be written: SQLite opens what it may only read all the same, and goes on with that
   * even when it could write again. Where another process holds the lock it is well.
   */
  requireWritable(): void {
    try {
      // No row, but the lock: a transaction alone would begin as one that reads.
      this.#writing.exec('update settings set value = value where false');
    } catch (error) {
      if (!isBusy(error)) throw storageErrorFrom(error, this.#writing.name);
    }
  }

  /** Reads through a file of up to 64 MiB. Throws OperatorError where a page, an index or a table is damaged. */
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
      hint: 'Nothing was changed. Keep a copy of the file, and restore the newest backup.',
    });
  }

  /**
   * Numbers the state of the file, moves the write-ahead log into it, and cuts the log to nothing. Returns the number that
   * the file has from then on; undefined where others who read or write at this moment left some of the log behind.
   */
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

  /** Waits for the transactions under way and closes both connections. */
  async close(): Promise<void> {
    // Kysely lends its one connection in turn: when it is lent to us, every transaction before us has ended.
    await this.#writer.connection().execute(async () => undefined);
    await this.reader.destroy();
    await this.#writer.destroy();
    this.#reading.close();
    this.#writing.close();
  }
}

function replacedMeanwhile(path: string): OperatorError {
  return new OperatorError(`the database was replaced while it was opened (${path})`, {
    hint: 'A backup was restored at this moment. Start again.',
  });
}
