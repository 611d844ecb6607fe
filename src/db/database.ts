/**
 * The vault's database: transactions, reads outside of them, and a generation number that tells caches when this or
 * another process changed their content.
 */
import { Kysely, type Transaction } from 'kysely';
import { type Integrity, requireIntegrity } from '../base/integrity.ts';
import { realWorld, type World } from '../base/world.ts';
import type { ChainEnd } from './audit/audit-chain.ts';
import { type NewAuditEvent, withRows } from './audit/audit-insertion.ts';
import { findLostEvents, type LogEnd, readMark } from './audit/audit-mark.ts';
import { EventGroup } from './audit/event-group.ts';
import type { LogMemory } from './audit/log-memory.ts';
import { RecordingAttempts } from './audit/recording-attempts.ts';
import type { DatabaseFile } from './database-file.ts';
import type { Engine, FillFile, ServerFacts, ServerOptions, WholeDatabase } from './engine.ts';
import type { Schema } from './schema/schema.ts';
import { fillNewFile } from './sqlite/filled-file.ts';
import { type OpenOptions, SqliteEngine } from './sqlite/sqlite-engine.ts';
import { copyRows } from './table-rows.ts';

/** Executes reads: the reading connection, or the current transaction. */
export type Reader = Kysely<Schema>;

/** Executes writes: only `Database.write` provides one. */
export type Writer = Transaction<Schema> & {
  /** Tags what this transaction writes; undefined until the database is bound to its master key. */
  readonly integrity: Integrity | undefined;
  /** The events of this transaction, in order. They come into the log last: no other events wait for its queries. */
  readonly events: NewAuditEvent[];
  /**
   * The tags of the rows that it wrote, by the name of the row in the log, which records them (audit/row-records.ts).
   */
  readonly rows: Map<string, Buffer>;
};

/** In bytes. */
const triedSize = 64 * 1024;

export class Database {
  readonly #engine: Engine;
  readonly #writer: Kysely<Schema>;
  readonly #events = new EventGroup((next) =>
    this.write(async ({ events }) => {
      events.push(...next());
    }),
  );
  readonly #recording = new RecordingAttempts(() => this.#tryWriting());
  /** Set once the master key has opened the check blob, which contains its sealed key. */
  integrity: Integrity | undefined;
  /** For reads outside transactions; never sees uncommitted changes. */
  readonly reader: Reader;

  /** A database of this engine, which it closes. */
  constructor(engine: Engine) {
    this.#engine = engine;
    this.#writer = new Kysely<Schema>({ dialect: engine.writing });
    this.reader = new Kysely<Schema>({ dialect: engine.reading });
  }

  /** Opens the database of a server, and migrates it. Rejects as `PostgresEngine.open`. */
  static async connect(url: string, options: ServerOptions): Promise<Database> {
    const { PostgresEngine } = await import('./postgres/postgres-engine.ts');
    const { world } = options;
    // No test sets the clock of the network.
    return new Database(
      await PostgresEngine.open(url, { ...options, world: world.isSet ? realWorld : world }),
    );
  }

  /** Opens the file at `path`, creates it if it is missing and migrates it. Throws as `SqliteEngine.open`. */
  static async open(path: string, world: World, options?: OpenOptions): Promise<Database> {
    return new Database(await SqliteEngine.open(path, world, options));
  }

  /** How messages name it: the path of its file, or the URL of the server without a password. */
  get place(): string {
    return this.#engine.place;
  }

  /** The directory of this machine in which drafts of backups may lie. */
  get directory(): string {
    return this.#engine.directory;
  }

  /** The file in which the database is, and what lies beside it; undefined on a server. */
  get file(): DatabaseFile | undefined {
    return this.#engine.file;
  }

  /** Whether several machines may have it open. */
  get isShared(): boolean {
    return this.#engine.now !== undefined;
  }

  /** What the server says of itself; undefined for a file. Rejects with StorageError. */
  async serverFacts(): Promise<ServerFacts | undefined> {
    return this.#engine.serverFacts?.();
  }

  /** The time of a shared database, by which all its nodes go, in UTC milliseconds. Rejects with StorageError. */
  async now(): Promise<number> {
    if (this.#engine.now === undefined) throw new Error('only a shared database has a clock of its own');
    return this.#engine.now();
  }

  /**
   * Runs `work` in one short transaction that holds the write lock from the beginning, and returns its result once the
   * transaction is durable. Await only queries in it: all other writes of the process wait meanwhile.
   */
  async write<T>(work: (writer: Writer) => Promise<T>): Promise<T> {
    let end: LogEnd | undefined;
    const result = await this.#writer.transaction().execute(async (transaction) => {
      const writer: Writer = Object.assign(transaction, {
        integrity: this.integrity,
        events: [],
        rows: new Map<string, Buffer>(),
      });
      const done = await work(writer);
      const events = withRows(writer.events, writer.rows);
      if (events.length > 0) end = await this.#engine.addEvents(writer, events);
      return done;
    });
    if (end !== undefined) this.memory.learn(end);
    if (end?.lost !== undefined) this.memory.report(end.lost);
    return result;
  }

  /** What this process has seen of the end of the audit log. */
  get memory(): LogMemory {
    return this.#engine.memory;
  }

  /**
   * The end of the audit log, for this process to remember; undefined if the sealed mark is missing or forged. Reports
   * a log that has stepped back since.
   */
  async observeLog(): Promise<ChainEnd | undefined> {
    const integrity = requireIntegrity(this);
    const { memory } = this;
    const known = memory.end;
    const lost = known && (await findLostEvents(this.reader, integrity, known));
    if (lost !== undefined) memory.report(lost);
    const end = await readMark(this.reader, integrity);
    if (end !== undefined) memory.learn(end);
    return end;
  }

  /**
   * A number that increases with every committed change to certificates, CA certificates or the rights of API keys, by
   * any process. Costs 3 µs if nothing was committed since the last call.
   */
  generation(): Promise<number> {
    return this.#engine.generation();
  }

  /** A number that changes whenever any process commits anything. */
  commits(): Promise<number> {
    return this.#engine.commits();
  }

  /**
   * Adds audit events, each chained to the one before, and resolves once they are durable. Events of several calls may
   * share a commit. Rejects with StorageError, and nothing recorded, if they cannot be.
   */
  append(events: readonly NewAuditEvent[]): Promise<void> {
    const appended = this.#engine.append?.(events, requireIntegrity(this)) ?? this.#events.append(events);
    this.#recording.observe(appended);
    return appended;
  }

  /**
   * Rejects with StorageError if the last audit events could not be recorded, and a write still fails. Where clients
   * are sent elsewhere meanwhile, nothing else would find that the disk has space again. A failed attempt counts for a
   * second.
   */
  requireRecording(world: Pick<World, 'elapsed'>): Promise<void> {
    return this.#recording.require(world);
  }

  /** Writes more than events need: a smaller write may still fit into the write-ahead log. */
  async #tryWriting(): Promise<void> {
    for (const value of ['x'.repeat(triedSize), '']) {
      await this.write((writer) =>
        writer
          .insertInto('settings')
          .values({ key: 'write-attempt', value })
          .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
          .execute(),
      );
    }
  }

  /** Rejects with StorageError if the database is not writable. A lock held by another process is fine. */
  requireWritable(): Promise<void> {
    return this.#alone(() => this.#engine.requireWritable());
  }

  /**
   * Throws StorageError if a write has been waiting for the disk for half a minute: then no other gets through, either.
   */
  requireProgress(): void {
    this.#engine.requireProgress();
  }

  /** A quick check of a database that is not too large. Throws OperatorError if it is damaged. */
  check(): Promise<void> {
    return this.#engine.check();
  }

  /**
   * Brings all that is committed into the file, and numbers it. Returns the number; undefined if others kept some of
   * the log.
   */
  foldLog(): Promise<number | undefined> {
    return this.#alone(() => this.#engine.foldLog());
  }

  /**
   * Copies the committed state into the empty file `copy`, while requests are served and others write. Throws CopyError
   * or StorageError.
   */
  copyTo(copy: string): Promise<void> {
    return this.#engine.copyTo(copy, fillerOf);
  }

  /** What concerns it as a whole. */
  get whole(): WholeDatabase {
    return this.#engine.whole;
  }

  /** Waits for what was begun and closes the database. */
  async close(): Promise<void> {
    await this.#alone(async () => undefined);
    await this.reader.destroy();
    await this.#writer.destroy();
    await this.#engine.close();
  }

  /**
   * Kysely lends its only connection to one user at a time: once we have it, all earlier transactions have finished.
   */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#writer.connection().execute(work);
  }
}

/**
 * Turns the empty file at `path` into a database, and fills it with all that a transaction on another engine sees. The
 * function that it returns rejects with CopyError, or as the engine does.
 */
function fillerOf(path: string, world: World): FillFile {
  return (state, { assignedIds }) =>
    fillNewFile(path, world, async (writer, whole) => {
      await copyRows(state, writer, world);
      await whole.setAssignedIds(writer, await assignedIds(state));
    });
}
