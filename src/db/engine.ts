/**
 * What an engine does for the store that no common SQL can. SQLite is one (sqlite/sqlite-engine.ts); nothing outside of
 * `src/db` knows which.
 */
import type { Dialect, Kysely } from 'kysely';
import type { Integrity } from '../base/integrity.ts';
import type { World } from '../base/world.ts';
import type { EventWriter, NewAuditEvent } from './audit/audit-insertion.ts';
import type { LogEnd } from './audit/audit-mark.ts';
import type { LogMemory } from './audit/log-memory.ts';
import type { DatabaseFile } from './database-file.ts';
import type { Schema } from './schema/schema.ts';

/** An open database. What returns a promise rejects with StorageError if the database or its disk fails. */
export type Engine = {
  /** How messages name it. */
  readonly place: string;
  /** A directory of this machine for what is being made of the database. */
  readonly directory: string;
  /** The file in which it is, and what lies beside it; undefined on a server, which keeps its files itself. */
  readonly file: DatabaseFile | undefined;
  /** What the server says of itself; undefined where there is none. Rejects with StorageError. */
  readonly serverFacts?: () => Promise<ServerFacts>;
  /** The time of the server in UTC milliseconds; undefined where all processes have one clock. */
  readonly now?: () => Promise<number>;
  /** For reads outside of transactions, which see only what is committed. */
  readonly reading: Dialect;
  /** For transactions, one at a time; each holds the write lock from its beginning. */
  readonly writing: Dialect;
  /** The generation (`Database.generation`); costs little if nothing was committed since the last call. */
  readonly generation: () => Promise<number>;
  /** A number that changes whenever any process commits anything. */
  readonly commits: () => Promise<number>;
  /**
   * Adds audit events in a transaction of their own, or one shared with others, and resolves once they are durable.
   * Where it is missing, a transaction does it.
   */
  readonly append?: ((events: readonly NewAuditEvent[], integrity: Integrity) => Promise<void>) | undefined;
  /** Adds audit events in a transaction that ends with them, and returns the end of the log that it commits. */
  readonly addEvents: (writer: EventWriter, events: readonly NewAuditEvent[]) => Promise<LogEnd>;
  /** What this process has seen of the log; `append` learns by itself. */
  readonly memory: LogMemory;
  /** Throws StorageError if writes no longer get through. */
  readonly requireProgress: () => void;
  /**
   * Rejects if the database cannot be written. A lock held by another process is fine. Call it outside of transactions.
   */
  readonly requireWritable: () => Promise<void>;
  /** A quick check of a database that is not too large. Throws OperatorError if it is damaged. */
  readonly check: () => Promise<void>;
  /**
   * Brings all that is committed into the file, and numbers it. Returns the number; undefined if others kept some of
   * the log. Call it outside of transactions.
   */
  readonly foldLog: () => Promise<number | undefined>;
  /**
   * Copies the committed state into the empty file `copy`, while others write; where the engine has no files,
   * `fillerOf` gives what does it. Rejects with CopyError, too.
   */
  readonly copyTo: (copy: string, fillerOf: (copy: string, world: World) => FillFile) => Promise<void>;
  readonly whole: WholeDatabase;
  /** Call it when nothing is read or written any more. */
  readonly close: () => Promise<void>;
};

/** Fills a new database file with all that a transaction sees. */
export type FillFile = (state: Kysely<Schema>, whole: WholeDatabase) => Promise<void>;

/** What concerns a database as a whole, in the SQL of its engine. Each runs in a transaction of the caller's. */
export type WholeDatabase = {
  /** Keeps all others from writing until the transaction ends. */
  readonly lock: (writer: Kysely<Schema>) => Promise<void>;
  /** The highest id that each table ever assigned, by the name of the table. */
  readonly assignedIds: (reader: Kysely<Schema>) => Promise<ReadonlyMap<string, number>>;
  /** The tables assign higher ids from then on. */
  readonly setAssignedIds: (writer: Kysely<Schema>, ids: ReadonlyMap<string, number>) => Promise<void>;
  /**
   * From the end of the transaction on, every process fails to change rows of the vault, whenever it opened the
   * database.
   */
  readonly forbidWrites: (writer: Kysely<Schema>) => Promise<void>;
  /** Ends that. */
  readonly allowWrites: (writer: Kysely<Schema>) => Promise<void>;
};

/** How a database on a server is opened. */
export type ServerOptions = {
  readonly world: World;
  /** Variables that libpq reads, too, and where `.pgpass` is. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly home?: string | undefined;
  /** A directory of this machine for drafts. */
  readonly directory: string;
  /** Connections for reads. There are three more: for transactions, for audit events, and for looks. */
  readonly connections?: number | undefined;
};

/** A server that follows this one. */
export type Standby = {
  readonly name: string;
  /** `streaming`, `catchup`, …; undefined if the vault's role may not see it. */
  readonly state: string | undefined;
  /** `sync`, `quorum`, `potential` or `async`; undefined likewise. */
  readonly sync: string | undefined;
};

/** What the server of a database says of itself. */
export type ServerFacts = {
  /** The server, for people. */
  readonly place: string;
  readonly version: string;
  /** Whether this connection has TLS, or is a unix socket. */
  readonly isEncrypted: boolean;
  readonly isSocket: boolean;
  /** A pooler that hands out sessions by transaction, or by session, is between. */
  readonly isPooled: boolean;
  readonly synchronousCommit: string;
  /** Empty: commits wait for no standby, and a failover may lose the last of them. */
  readonly synchronousStandbyNames: string;
  readonly standbys: readonly Standby[];
  /** Off: a power cut of the server may destroy the database. */
  readonly fsync: boolean;
  readonly fullPageWrites: boolean;
  readonly maxConnections: number;
  /** Whether any role may create functions and tables in the vault's schema, which the vault might then use. */
  readonly isSchemaOpen: boolean;
  /** Milliseconds since 1970: the server's clock, and the vault's before and after it was read. */
  readonly clock: { readonly server: number; readonly before: number; readonly after: number };
};
