/**
 * A PostgreSQL server as an engine of the store. Transactions of all nodes take turns, as on SQLite: each locks the row
 * of the generation when it begins. Audit events of requests need only the end of the log, and have a connection of
 * their own.
 */
import { type Dialect, Kysely, sql } from 'kysely';
import type { Integrity } from '../../base/integrity.ts';
import type { World } from '../../base/world.ts';
import type { EventWriter, NewAuditEvent } from '../audit/audit-insertion.ts';
import type { LogEnd } from '../audit/audit-mark.ts';
import { LogMemory } from '../audit/log-memory.ts';
import type { Engine, FillFile, ServerFacts, ServerOptions } from '../engine.ts';
import type { Schema } from '../schema/schema.ts';
import { AuditAppend, extendChain } from './audit-append.ts';
import { ConnectionPool } from './connection-pool.ts';
import { displayUrl, parseConnectionUrl } from './connection-url.ts';
import { DatabaseLook } from './database-look.ts';
import { migrate, refuseNewerSchema } from './migrations/migrations.ts';
import { postgresDialect } from './postgres-dialect.ts';
import { serverFacts } from './server-facts.ts';
import { bePatient, wholePostgres } from './whole-database.ts';

const defaultConnections = 8;

/** All transactions of all nodes, one at a time. */
const lockGeneration = "select 1 from settings where key = 'generation' for update";

/** Any number: who migrates this database, or creates its schema. */
const migrationLock = 'select pg_advisory_xact_lock(4849676576108)';

type Pools = Record<'reading' | 'writing' | 'appending' | 'looking', ConnectionPool>;

export class PostgresEngine implements Engine {
  readonly reading: Dialect;
  readonly writing: Dialect;
  readonly place: string;
  readonly directory: string;
  readonly file = undefined;
  readonly whole = wholePostgres;
  readonly memory = new LogMemory();
  readonly #pools: Pools;
  readonly #world: World;
  readonly #look: DatabaseLook;
  readonly #append: AuditAppend;
  /** For a write beside the transactions. */
  readonly #probe: Kysely<Schema>;
  #commits = 0;

  private constructor(pools: Pools, place: string, { directory, world }: ServerOptions) {
    this.#world = world;
    this.place = place;
    this.directory = directory;
    this.#pools = pools;
    this.reading = postgresDialect(pools.reading, { kind: 'snapshot' });
    this.writing = postgresDialect(pools.writing, { kind: 'write', lock: lockGeneration, takeTurns: true });
    this.#probe = new Kysely<Schema>({
      dialect: postgresDialect(pools.reading, { kind: 'write', lock: lockGeneration }),
    });
    this.#append = new AuditAppend(
      pools.appending,
      new Kysely<Schema>({ dialect: this.reading }),
      this.memory,
    );
    this.#look = new DatabaseLook(pools.looking);
  }

  /**
   * Opens the database at `url`, and migrates it. Rejects with StorageError if the server cannot be reached, and with
   * OperatorError if it, or what is in the database, is not fit for a vault; then nothing has changed.
   */
  static async open(text: string, options: ServerOptions): Promise<PostgresEngine> {
    const { world, environment = {}, home, connections = defaultConnections } = options;
    const url = parseConnectionUrl(text, { environment, home });
    const pools = {
      reading: new ConnectionPool({ url, world, size: connections }),
      writing: new ConnectionPool({ url, world, size: 1, isPipelined: true }),
      appending: new ConnectionPool({ url, world, size: 1, isPipelined: true }),
      looking: new ConnectionPool({ url, world, size: 1 }),
    };
    const engine = new PostgresEngine(pools, displayUrl(url), options);
    try {
      await prepareSchema(pools.writing, engine.place);
      await engine.generation();
      return engine;
    } catch (error) {
      await engine.close();
      throw error;
    }
  }

  now(): Promise<number> {
    return this.#look.now();
  }

  serverFacts(): Promise<ServerFacts> {
    return serverFacts(this.#pools.reading, this.#world);
  }

  generation(): Promise<number> {
    return this.#look.generation();
  }

  /** Always another one: to know more would cost a query. */
  async commits(): Promise<number> {
    this.#commits += 1;
    return this.#commits;
  }

  append(events: readonly NewAuditEvent[], integrity: Integrity): Promise<void> {
    return this.#append.append(events, integrity);
  }

  addEvents(writer: EventWriter, events: readonly NewAuditEvent[]): Promise<LogEnd> {
    return extendChain(writer, events, this.memory.end);
  }

  requireProgress(): void {
    // What the server does not answer ends by itself within seconds, with an error.
  }

  async requireWritable(): Promise<void> {
    await this.#probe.transaction().execute(async (writer) => {
      await sql`update settings set value = value where key = 'generation'`.execute(writer);
    });
  }

  /** The server checks its own pages. */
  async check(): Promise<void> {
    await this.generation();
  }

  async foldLog(): Promise<undefined> {
    return undefined;
  }

  /** On a connection of its own: the copy of a large vault takes minutes. */
  async copyTo(copy: string, fillerOf: (copy: string, world: World) => FillFile): Promise<void> {
    const pool = new ConnectionPool({ url: this.#pools.reading.url, world: this.#world, size: 1 });
    try {
      const db = new Kysely<Schema>({ dialect: postgresDialect(pool, { kind: 'snapshot' }) });
      await db.transaction().execute(async (state) => {
        await bePatient(state);
        await fillerOf(copy, this.#world)(state, this.whole);
      });
    } finally {
      await pool.close();
    }
  }

  async close(): Promise<void> {
    for (const pool of Object.values(this.#pools)) await pool.close();
  }
}

async function prepareSchema(pool: ConnectionPool, place: string): Promise<void> {
  const db = new Kysely<unknown>({ dialect: postgresDialect(pool, { kind: 'write', lock: migrationLock }) });
  await db.transaction().execute(async (transaction) => {
    const known = await sql<{ there: unknown }>`select to_regclass('kysely_migration') as there`.execute(
      transaction,
    );
    if (known.rows.some(({ there }) => there !== null)) {
      const applied = sql<{ name: string }>`select name from kysely_migration order by name`;
      const { rows } = await applied.execute(transaction);
      refuseNewerSchema(
        rows.map(({ name }) => name),
        place,
      );
    }
    await migrate(transaction);
  });
}
