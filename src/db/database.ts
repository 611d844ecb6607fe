/**
 * The vault's database: one connection that writes, one that only reads, and a generation number that tells caches when
 * this or another process changed their content.
 */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Worker } from 'node:worker_threads';
import BetterSqlite3 from 'better-sqlite3';
import { Kysely, sql, type Transaction } from 'kysely';
import { type Integrity, requireIntegrity } from '../base/integrity.ts';
import { OperatorError } from '../base/operator-error.ts';
import { StorageError } from '../base/storage-error.ts';
import type { World } from '../base/world.ts';
import { insertAuditEvents, type NewAuditEvent } from './audit/audit-insertion.ts';
import { EventGroup } from './audit/event-group.ts';
import { DatabaseFile } from './database-file.ts';
import type { Schema } from './schema/schema.ts';
import { copyDatabase } from './sqlite/backup-copy.ts';
import { checkQuickly } from './sqlite/database-examination.ts';
import { refuseEmptyDatabase } from './sqlite/database-inspection.ts';
import { lendDirectory, loadedAddonPath } from './sqlite/embedded-addon.ts';
import { FileInPlace } from './sqlite/file-in-place.ts';
import { type Migrations, migrate, refuseForeignDatabase } from './sqlite/migrations/migrations.ts';
import { createDatabase, hasContent } from './sqlite/new-database.ts';
import { readingDialect, writingDialect } from './sqlite/sqlite-dialect.ts';
import { storageErrorFrom } from './sqlite/storage-error.ts';
import { ThreadConnection } from './sqlite/thread-connection.ts';
import { enterWal } from './sqlite/write-ahead-log.ts';
import {
  DirectConnection,
  openForReading,
  prepareForWriting,
  type WriteConnection,
} from './sqlite/write-connection.ts';

/** Executes reads: the reading connection, or the current transaction. */
export type Reader = Kysely<Schema>;

/** Executes writes: only `Database.write` provides one. */
export type Writer = Transaction<Schema> & {
  /** Tags what this transaction writes; undefined until the database is bound to its master key. */
  readonly integrity: Integrity | undefined;
};

/** How long opening waits for another process that creates or migrates the database. */
const openingPatienceMs = 5000;

export type OpenOptions = {
  /** Only tests have others. */
  readonly migrations?: Migrations | undefined;
  /**
   * Starts the thread that writes, which loads SQLite from the path `library`, if given, as this thread did. Without it, or
   * if it returns nothing, writes run in the calling thread.
   */
  readonly startThread?: ((library: string | undefined) => Worker | undefined) | undefined;
};

/** A lock of another process is waited for 5 s; a healthy disk takes milliseconds. */
const mostSeconds = 30;

export class Database {
  readonly #file: FileInPlace;
  readonly #writing: WriteConnection;
  readonly #reading: BetterSqlite3.Database;
  readonly #writer: Kysely<Schema>;
  readonly #events = new EventGroup((next) => this.write((writer) => insertAuditEvents(writer, next())));
  readonly #dataVersion: BetterSqlite3.Statement;
  readonly #generation: BetterSqlite3.Statement;
  #seenDataVersion: unknown;
  #seenGeneration = -1;
  /** Set once the master key has opened the check blob, which contains its sealed key. */
  integrity: Integrity | undefined;
  /** For reads outside transactions; never sees uncommitted changes. */
  readonly reader: Reader;

  private constructor(reading: BetterSqlite3.Database, writing: WriteConnection, file: FileInPlace) {
    this.#file = file;
    this.#writing = writing;
    this.#writer = new Kysely<Schema>({ dialect: writingDialect(writing) });
    this.#reading = reading;
    this.reader = new Kysely<Schema>({ dialect: readingDialect(reading) });
    this.#dataVersion = this.#reading.prepare('pragma data_version').pluck();
    this.#generation = this.#reading.prepare("select value from settings where key = 'generation'").pluck();
  }

  /**
   * Opens the database at `path`, creates it if it is missing (file mode 0600) and migrates it. On failure throws
   * StorageError or OperatorError and changes nothing.
   */
  static async open(path: string, world: World, options: OpenOptions = {}): Promise<Database> {
    try {
      lendDirectory(dirname(path));
      if (!hasContent(path)) {
        await createDatabase(path, world, async (draft) => {
          const db = await Database.#openFile(draft, world, 'empty', { migrations: options.migrations });
          try {
            // close() does this too, but hides errors of the disk.
            await db.#writing.checkpoint();
          } finally {
            await db.close();
          }
        });
      }
      return await Database.#openFile(path, world, 'filled', options);
    } catch (error) {
      throw storageErrorFrom(error, path);
    }
  }

  /** `content` is what the file must contain: tables, or nothing yet. */
  static async #openFile(
    path: string,
    world: World,
    content: 'filled' | 'empty',
    { migrations, startThread }: OpenOptions,
  ): Promise<Database> {
    const { ino } = statSync(path);
    if (content === 'filled') refuseEmptyDatabase(path);
    const writing = new BetterSqlite3(path, { fileMustExist: true, timeout: openingPatienceMs });
    let reading: BetterSqlite3.Database | undefined;
    try {
      prepareForWriting(writing);
      refuseForeignDatabase(writing, migrations);
      await enterWal(writing, openingPatienceMs, world);
      // From here on the file cannot be replaced; a restore may have replaced it before.
      if (statSync(path, { throwIfNoEntry: false })?.ino !== ino) throw replacedMeanwhile(path);
      const file = new FileInPlace(path, world);
      const connection = new DirectConnection(writing, world, file);
      await migrate(writing, new Kysely<Schema>({ dialect: writingDialect(connection) }), migrations);
      reading = openForReading(writing.name, openingPatienceMs);
      const thread = startThread?.(loadedAddonPath());
      if (thread === undefined) {
        connection.beImpatient();
        return new Database(reading, connection, file);
      }
      const onThread = await ThreadConnection.open(thread, writing.name, world);
      // The reading connection is open, so this one is not the last, whose end would remove the log.
      writing.close();
      return new Database(reading, onThread, file);
    } catch (error) {
      reading?.close();
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
   * Adds audit events, each chained to the one before, and resolves once they are durable. Events of several calls may
   * share a commit. Rejects with StorageError, and nothing recorded, if they cannot be.
   */
  append(events: readonly NewAuditEvent[]): Promise<void> {
    return this.#writing.append?.(events, requireIntegrity(this)) ?? this.#events.append(events);
  }

  /**
   * Rejects with StorageError if the database is not writable: SQLite also opens files that it can only read, and keeps
   * doing so even after they become writable. A lock held by another process is fine.
   */
  requireWritable(): Promise<void> {
    return this.#alone(() => this.#writing.requireWritable());
  }

  /** Throws StorageError if a write has been waiting for the disk for half a minute: then no other gets through, either. */
  requireProgress(): void {
    const seconds = Math.floor((this.#writing.waiting?.() ?? 0) / 1000);
    if (seconds < mostSeconds) return;
    throw new StorageError(
      `the disk of the database has not answered for ${seconds} s (${this.#reading.name})`,
      {
        hint: 'Check the disk and the kernel log.',
      },
    );
  }

  /** Checks a file of up to 64 MiB. Throws OperatorError if a page, an index or a table is damaged. */
  async check(): Promise<void> {
    checkQuickly(this.#reading);
  }

  /** Numbers the file, checkpoints and truncates the log. Returns the number; undefined if others kept some of the log. */
  async foldLog(): Promise<number | undefined> {
    const number = await this.write(async (writer) => {
      const { rows } = await sql<{ user_version: number }>`pragma user_version`.execute(writer);
      const next = (rows[0]?.user_version ?? 0) + 1;
      await sql.raw(`pragma user_version = ${next}`).execute(writer);
      return next;
    });
    const isEmpty = await this.#alone(() => this.#writing.checkpoint());
    return isEmpty ? number : undefined;
  }

  /** Waits for what was begun and closes both connections. */
  async close(): Promise<void> {
    await this.#alone(async () => undefined);
    await this.reader.destroy();
    await this.#writer.destroy();
    this.#reading.close();
    await this.#writing.close();
  }

  /** Kysely lends its only connection to one user at a time: once we have it, all earlier transactions have finished. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#writer.connection().execute(work);
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
