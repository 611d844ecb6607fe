/**
 * Kysely on better-sqlite3, the way the vault needs it: statements are prepared once and remembered by their text,
 * transactions take the write lock at once (BEGIN IMMEDIATE), and waiting for another process's lock does not block
 * the event loop.
 */
import type BetterSqlite3 from 'better-sqlite3';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { World } from '../../base/world.ts';
import { isBusy, storageErrorFrom } from '../storage-error.ts';
import type { FileInPlace } from './file-in-place.ts';

/** How long transactions wait for another process's write lock, all together. */
const lockPatienceMs = 5000;
/** Between two tries, each of which may block the event loop for a moment. */
const shortestPauseMs = 5;
const longestPauseMs = 40;
const rememberedStatements = 500;

/**
 * A dialect over an open database. Closing the database is the caller's business. With `file`, no transaction begins in a
 * file that is not in its place any more, and none is said to be durable that ended there.
 */
export function sqliteDialect(database: BetterSqlite3.Database, world: World, file?: FileInPlace): Dialect {
  return {
    createAdapter: () => new TransactionalSqliteAdapter(),
    createDriver: () => sqliteDriver(new Connection(database), world, file),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/** SQLite's DDL is transactional; Kysely's own adapter does not say so, for the sake of migrations that drop tables. */
class TransactionalSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

function sqliteDriver(connection: Connection, world: World, file: FileInPlace | undefined): Driver {
  // How long the lock has been waited for since somebody last got it: who comes later does not wait all of that again, or
  // those behind would wait for ever. Added up, because a clock that is set back would make it endless.
  let lockedFor = 0;
  const run = (text: string) => connection.executeQuery(CompiledQuery.raw(text));
  return {
    init: async () => undefined,
    acquireConnection: async () => connection,
    releaseConnection: async () => undefined,
    beginTransaction: async () => {
      file?.require();
      for (let pause = shortestPauseMs; ; pause = Math.min(2 * pause, longestPauseMs)) {
        const before = world.now();
        try {
          await run('begin immediate');
          lockedFor = 0;
          return;
        } catch (error) {
          const { cause } = error as { cause?: unknown };
          if (!isBusy(cause) || lockedFor >= lockPatienceMs) throw error;
          await world.sleep(pause);
          lockedFor += Math.max(pause, world.now() - before);
        }
      }
    },
    commitTransaction: async () => {
      await run('commit');
      file?.require();
    },
    rollbackTransaction: async () => {
      // SQLite has rolled back by itself after a full disk or an I/O error; a second rollback would hide that error.
      if (connection.inTransaction) await run('rollback');
    },
    destroy: async () => undefined,
  };
}

class Connection implements DatabaseConnection {
  readonly #database: BetterSqlite3.Database;
  readonly #statements = new Map<string, BetterSqlite3.Statement>();

  constructor(database: BetterSqlite3.Database) {
    this.#database = database;
  }

  get inTransaction(): boolean {
    return this.#database.inTransaction;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    try {
      const statement = this.#prepare(sql);
      if (statement.reader) return { rows: statement.all(...parameters) as R[] };
      const { changes, lastInsertRowid } = statement.run(...parameters);
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    } catch (error) {
      throw storageErrorFrom(error, this.#database.name);
    }
  }

  // biome-ignore lint/correctness/useYield: the interface demands a generator, and nothing of the vault streams rows.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('queries are not streamed');
  }

  #prepare(sql: string): BetterSqlite3.Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    if (this.#statements.size >= rememberedStatements) this.#statements.clear();
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}
