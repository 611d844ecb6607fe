/**
 * Kysely on SQLite with the behavior the vault needs: transactions take the write lock up front (BEGIN IMMEDIATE), and
 * waiting for the lock of another process does not block the event loop.
 */
import type BetterSqlite3 from 'better-sqlite3';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type FunctionNode,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { World } from '../../base/world.ts';
import type { QueryRunner } from '../compiled-query.ts';
import { type EngineSql, inEngineSql } from '../engine-sql.ts';
import type { Schema } from '../schema/schema.ts';
import type { FileInPlace } from './file-in-place.ts';
import { SqliteStatements, type StatementResult } from './sqlite-statements.ts';
import { DirectConnection, type WriteConnection } from './write-connection.ts';

/** Executes statements; a synchronous result saves a request a turn of the microtask queue. */
type Executor = {
  readonly execute: (sql: string, values: readonly unknown[]) => StatementResult | Promise<StatementResult>;
};

type Transactions = Pick<WriteConnection, 'begin' | 'commit' | 'rollback'>;

/**
 * A dialect for an open database, which the caller closes. With `file`, no transaction begins in a file that is no
 * longer in place, and no commit to it is reported as durable.
 */
export function sqliteDialect(database: BetterSqlite3.Database, world: World, file?: FileInPlace): Dialect {
  return writingDialect(new DirectConnection(database, world, file));
}

/** A dialect whose queries and transactions go to this connection. */
export function writingDialect(connection: WriteConnection): Dialect {
  return dialect(connection, connection);
}

/** A read-only dialect without transactions. */
export function readingDialect(database: BetterSqlite3.Database): Dialect {
  const none = async () => {
    throw new Error('a reader has no transactions');
  };
  return dialect(new SqliteStatements(database), { begin: none, commit: none, rollback: none });
}

/** Executes compiled queries on this connection without Kysely's layers, which take longer than SQLite itself. */
export function queryRunner(connection: WriteConnection): QueryRunner {
  const kysely = new Kysely<Schema>({ dialect: writingDialect(connection) });
  const direct = new Connection(connection);
  return {
    getExecutor: () => kysely.getExecutor(),
    executeQuery: (query) => direct.executeQuery(query),
  };
}

function dialect(executor: Executor, transactions: Transactions): Dialect {
  const connection = new Connection(executor);
  const driver: Driver = {
    init: async () => undefined,
    acquireConnection: async () => connection,
    releaseConnection: async () => undefined,
    beginTransaction: () => transactions.begin(),
    commitTransaction: () => transactions.commit(),
    rollbackTransaction: () => transactions.rollback(),
    destroy: async () => undefined,
  };
  return {
    createAdapter: () => new TransactionalSqliteAdapter(),
    createDriver: () => driver,
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

class Connection implements DatabaseConnection {
  readonly #executor: Executor;

  constructor(executor: Executor) {
    this.#executor = executor;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const executed = this.#executor.execute(sql, parameters);
    const { rows, changes, lastRowId } = executed instanceof Promise ? await executed : executed;
    if (changes === undefined) return { rows: rows as R[] };
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastRowId ?? 0) };
  }

  // biome-ignore lint/correctness/useYield: the interface requires a generator, and the vault streams no rows.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('queries are not streamed');
  }
}

const engine: EngineSql = {
  // Equals a bare `?`, but for that SQLite would replan a query with left joins at each binding, which takes thirty
  // times as long as running it.
  steadyValue: ['+', ''],
  // The planner uses no index for an expression that is not a bare column.
  withoutIndex: ['+', ''],
  containsText: ['(instr(', ', ', ') > 0)'],
  smallerOf: ['min(', ', ', ')'],
  numbersIn: ['(select value from json_each(', '))'],
  jsonPairs: ['json_group_array(json_array(', ', ', '))'],
  assignedIds: ['sqlite_sequence'],
  // The column has a collation that does this.
  sameWithoutCase: ['(', ' = ', ')'],
  // A cast would prevent index use.
  largeNumber: ['', ''],
  storedText: ['', ''],
  storedNumber: ['', ''],
  storedBytes: ['', ''],
};

/** Compiles functions that differ by engine. */
export class SqliteCompiler extends SqliteQueryCompiler {
  protected override visitFunction(node: FunctionNode): void {
    const own = inEngineSql(node, engine);
    if (own === undefined) super.visitFunction(node);
    else this.visitRaw(own);
  }
}
