/**
 * Kysely on better-sqlite3 with the behavior the vault needs: statements are prepared once and cached by their text,
 * transactions take the write lock at once (BEGIN IMMEDIATE), and waiting for the lock of another process does not
 * block the event loop.
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
} from 'kysely';
import type { World } from '../../base/world.ts';
import type { FileInPlace } from './file-in-place.ts';
import { SqliteCompiler } from './sqlite-compiler.ts';
import { isBusy, storageErrorFrom } from './storage-error.ts';

/** How long all transactions together wait for the write lock of another process. */
const lockPatienceMs = 5000;
/** Between two tries, each of which may block the event loop briefly. */
const shortestPauseMs = 5;
const longestPauseMs = 40;
const rememberedStatements = 500;

/**
 * A dialect for an open database, which the caller closes. With `file`, no transaction begins in a file that is no
 * longer in place, and none that ended there is reported as durable.
 */
export function sqliteDialect(database: BetterSqlite3.Database, world: World, file?: FileInPlace): Dialect {
  return {
    createAdapter: () => new TransactionalSqliteAdapter(),
    createDriver: () => sqliteDriver(new Connection(database), world, file),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteCompiler(),
  };
}

/** SQLite's DDL is transactional; Kysely's adapter denies it because of migrations that drop tables. */
class TransactionalSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

function sqliteDriver(connection: Connection, world: World, file: FileInPlace | undefined): Driver {
  // How long the lock has been waited for since it was last acquired: later transactions do not start that wait over,
  // or those behind them would wait forever. Summed up, because a clock that is set back would make it endless.
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
      // SQLite has already rolled back after a full disk or an I/O error; a second rollback would hide that error.
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

  // biome-ignore lint/correctness/useYield: the interface requires a generator, and the vault streams no rows.
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
