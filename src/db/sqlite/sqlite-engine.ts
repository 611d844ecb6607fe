/**
 * The SQLite engine: one connection that writes, on this thread or its own, and a read-only one. Opening creates a
 * missing database and migrates an older one.
 */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Worker } from 'node:worker_threads';
import type BetterSqlite3 from 'better-sqlite3';
import { type Dialect, Kysely } from 'kysely';
import { hasContent } from '../../base/file-content.ts';
import type { Integrity } from '../../base/integrity.ts';
import { StorageError } from '../../base/storage-error.ts';
import type { World } from '../../base/world.ts';
import { type EventWriter, insertAuditEvents, type NewAuditEvent } from '../audit/audit-insertion.ts';
import type { LogEnd } from '../audit/audit-mark.ts';
import { LogMemory } from '../audit/log-memory.ts';
import { DatabaseFile } from '../database-file.ts';
import type { Engine } from '../engine.ts';
import type { Schema } from '../schema/schema.ts';
import { copyDatabase } from './backup-copy.ts';
import { checkQuickly } from './database-examination.ts';
import { refuseEmptyDatabase } from './database-inspection.ts';
import { lendDirectory, loadedAddonPath } from './embedded-addon.ts';
import { FileInPlace, replacedMeanwhile } from './file-in-place.ts';
import { LostLogError } from './lost-log.ts';
import { type Migrations, migrate, refuseForeignDatabase, refuseInUse } from './migrations.ts';
import { createDatabase } from './new-database.ts';
import { readingDialect, writingDialect } from './sqlite-dialect.ts';
import { storageErrorFrom } from './storage-error.ts';
import { ThreadConnection } from './thread-connection.ts';
import { wholeSqlite } from './whole-database.ts';
import { enterWal } from './write-ahead-log.ts';
import {
  DirectConnection,
  openForReading,
  openForWriting,
  openingPatienceMs,
  type WriteConnection,
} from './write-connection.ts';

export type OpenOptions = {
  /** Set only by tests. */
  readonly migrations?: Migrations | undefined;
  /**
   * Starts the thread that writes, which loads SQLite from `library`. Without one, writes run in the calling thread.
   */
  readonly startThread?: ((library: string | undefined) => Worker | undefined) | undefined;
  /** Called after an upgrade with the path of the copy made before it. */
  readonly onUpgraded?: ((copy: string) => void) | undefined;
};

/** Waiting for a lock takes at most 5 s; a healthy disk takes milliseconds. */
const maxSeconds = 30;

export class SqliteEngine implements Engine {
  readonly reading: Dialect;
  readonly writing: Dialect;
  readonly whole = wholeSqlite;
  readonly memory = new LogMemory();
  readonly append: ((events: readonly NewAuditEvent[], integrity: Integrity) => Promise<void>) | undefined;
  readonly #inPlace: FileInPlace;
  readonly #writing: WriteConnection;
  readonly #reading: BetterSqlite3.Database;
  readonly #dataVersion: BetterSqlite3.Statement;
  readonly #generation: BetterSqlite3.Statement;
  #seenDataVersion: unknown;
  #seenGeneration = -1;

  private constructor(reading: BetterSqlite3.Database, writing: WriteConnection, inPlace: FileInPlace) {
    this.#inPlace = inPlace;
    this.#writing = writing;
    this.#reading = reading;
    this.reading = readingDialect(reading);
    this.writing = writingDialect(writing);
    this.append = writing.append && ((events, integrity) => this.#appendOn(events, integrity));
    this.#dataVersion = reading.prepare('pragma data_version').pluck();
    this.#generation = reading.prepare("select value from settings where key = 'generation'").pluck();
  }

  /**
   * Opens the database at `path`, creates it if it is missing (file mode 0600) and migrates it. On failure throws
   * StorageError or OperatorError and changes nothing.
   */
  static async open(path: string, world: World, options: OpenOptions = {}): Promise<SqliteEngine> {
    try {
      lendDirectory(dirname(path));
      if (!hasContent(path)) {
        await createDatabase(path, world, async (draft) => {
          const { migrations } = options;
          const engine = await SqliteEngine.#openFile(draft, world, 'empty', { migrations });
          try {
            // close() does this too, but hides disk errors.
            await engine.#writing.checkpoint();
          } finally {
            await engine.close();
          }
        });
      }
      await refuseInUse(path, world, options.migrations);
      return await SqliteEngine.#openFile(path, world, 'filled', options);
    } catch (error) {
      throw storageErrorFrom(error, path);
    }
  }

  /** `content` is what the file must contain: tables, or nothing yet. */
  static async #openFile(
    path: string,
    world: World,
    content: 'filled' | 'empty',
    { migrations, startThread, onUpgraded }: OpenOptions,
  ): Promise<SqliteEngine> {
    const { ino } = statSync(path);
    // Also checks for a lost log.
    if (content === 'filled') refuseEmptyDatabase(path);
    const writing = openForWriting(path);
    let reading: BetterSqlite3.Database | undefined;
    let onThread: ThreadConnection | undefined;
    try {
      refuseForeignDatabase(writing, migrations);
      await enterWal(writing, openingPatienceMs, world);
      // From here on the file cannot be replaced; a restore may have replaced it before.
      if (statSync(path, { throwIfNoEntry: false })?.ino !== ino) throw replacedMeanwhile(path);
      // A read creates an empty log if it is missing.
      writing.pragma('user_version');
      const inPlace = new FileInPlace(path, world);
      const direct = new DirectConnection(writing, world, inPlace);
      const kysely = new Kysely<Schema>({ dialect: writingDialect(direct) });
      await migrate(writing, kysely, migrations, onUpgraded);
      reading = openForReading(path);
      const thread = startThread?.(loadedAddonPath());
      if (thread === undefined) {
        direct.beImpatient();
        return new SqliteEngine(reading, direct, inPlace);
      }
      onThread = await ThreadConnection.open(thread, path, world);
      const engine = new SqliteEngine(reading, onThread, inPlace);
      // The reading connection is open, so closing this one does not remove the log.
      writing.close();
      return engine;
    } catch (error) {
      await onThread?.close();
      reading?.close();
      writing.close();
      throw error;
    }
  }

  get place(): string {
    return this.#reading.name;
  }

  get directory(): string {
    return dirname(this.#reading.name);
  }

  get file(): DatabaseFile {
    return new DatabaseFile(this.#reading.name);
  }

  async generation(): Promise<number> {
    try {
      this.#requireInPlace();
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

  async commits(): Promise<number> {
    try {
      this.#requireInPlace();
      return this.#dataVersion.get() as number;
    } catch (error) {
      throw storageErrorFrom(error, this.#reading.name);
    }
  }

  /** For reads. If only the log is lost, the connection that writes saves it. */
  #requireInPlace(): void {
    try {
      this.#inPlace.requireLately();
    } catch (error) {
      if (error instanceof LostLogError) {
        this.#writing.requireWritable().catch(() => {
          // The next write reports it.
        });
      }
      throw error;
    }
  }

  addEvents(writer: EventWriter, events: readonly NewAuditEvent[]): Promise<LogEnd> {
    return insertAuditEvents(writer, events, this.memory.end);
  }

  async #appendOn(events: readonly NewAuditEvent[], integrity: Integrity): Promise<void> {
    const end = await this.#writing.append?.(events, integrity, this.memory.end);
    if (end === undefined) return;
    this.memory.learn(end);
    if (end.lost !== undefined) this.memory.report(end.lost);
  }

  requireProgress(): void {
    const seconds = Math.floor((this.#writing.waiting?.() ?? 0) / 1000);
    if (seconds < maxSeconds) return;
    throw new StorageError(
      `the disk of the database has not answered for ${seconds} s (${this.#reading.name})`,
      { hint: 'Check the disk and the kernel log.' },
    );
  }

  /** SQLite opens unwritable files read-only, and stays read-only even after they become writable. */
  requireWritable(): Promise<void> {
    return this.#writing.requireWritable();
  }

  /** Checks a file of up to 64 MiB: its pages, indexes and tables. */
  async check(): Promise<void> {
    checkQuickly(this.#reading);
  }

  async foldLog(): Promise<number | undefined> {
    const number = await this.#countFold();
    return (await this.#writing.checkpoint()) ? number : undefined;
  }

  async #countFold(): Promise<number> {
    const connection = this.#writing;
    await connection.begin();
    try {
      const [row] = (await connection.execute('pragma user_version', [])).rows as { user_version: number }[];
      const number = (row?.user_version ?? 0) + 1;
      await connection.execute(`pragma user_version = ${number}`, []);
      await connection.commit();
      return number;
    } catch (error) {
      await connection.rollback();
      throw error;
    }
  }

  async copyTo(copy: string): Promise<void> {
    // Another connection of this process would create a log.
    this.#inPlace.require();
    return copyDatabase(this.#reading.name, copy);
  }

  async close(): Promise<void> {
    this.#reading.close();
    await this.#writing.close();
  }
}
