/**
 * Kysely on a PostgreSQL server, with the behavior that the vault needs: transactions begin with the lock of their
 * kind, and those of one process queue here and not at the server, where waiting has an end.
 */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  PostgresAdapter,
  PostgresIntrospector,
  type QueryResult,
} from 'kysely';
import type { ConnectionPool } from './connection-pool.ts';
import { PostgresCompiler } from './postgres-compiler.ts';
import type { PostgresConnection, StatementResult, TransactionKind } from './postgres-connection.ts';
import { sentValue } from './postgres-types.ts';
import { beginWith } from './transaction-begin.ts';

export type Transactions = {
  readonly kind: TransactionKind;
  /** The statement with which each begins. */
  readonly lock?: string;
  /** Only one user at a time has the connection. */
  readonly takeTurns?: boolean;
};

/** A dialect for reads, and for these transactions. */
export function postgresDialect(
  pool: ConnectionPool,
  { kind, lock, takeTurns = false }: Transactions,
): Dialect {
  const turns = takeTurns ? new Turns() : undefined;
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => ({
      init: async () => undefined,
      acquireConnection: async () => {
        await turns?.take();
        return new Lent(pool);
      },
      releaseConnection: async (lent) => {
        (lent as Lent).end();
        turns?.pass();
      },
      beginTransaction: (lent) => (lent as Lent).begin(kind, lock),
      commitTransaction: (lent) => (lent as Lent).transaction.commit(),
      rollbackTransaction: (lent) => (lent as Lent).transaction.rollback(),
      destroy: async () => undefined,
    }),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresCompiler(),
  };
}

/** Executes a compiled query in the transaction of this connection. */
export async function executeIn<Row>(
  connection: PostgresConnection,
  { sql, parameters }: Pick<CompiledQuery, 'sql' | 'parameters'>,
): Promise<QueryResult<Row>> {
  return resultOf(await connection.execute(sql, parameters.map(sentValue)));
}

function resultOf<Row>({ rows, changes }: StatementResult): QueryResult<Row> {
  return { rows: rows as Row[], ...(changes !== undefined && { numAffectedRows: BigInt(changes) }) };
}

/** What Kysely takes for a connection: any one of the pool for each read, and one for the whole of a transaction. */
class Lent implements DatabaseConnection {
  readonly #pool: ConnectionPool;
  #transaction: PostgresConnection | undefined;

  constructor(pool: ConnectionPool) {
    this.#pool = pool;
  }

  get transaction(): PostgresConnection {
    if (this.#transaction === undefined) throw new Error('no transaction has begun');
    return this.#transaction;
  }

  async begin(kind: TransactionKind, lock: string | undefined): Promise<void> {
    if (lock === undefined) {
      this.#transaction = await this.#pool.begin(kind);
      return;
    }
    const begun = await beginWith(this.#pool, kind, (transaction) => transaction.execute(lock, []));
    this.#transaction = begun.connection;
  }

  end(): void {
    if (this.#transaction !== undefined) this.#pool.release(this.#transaction);
    this.#transaction = undefined;
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (this.#transaction !== undefined) return executeIn(this.#transaction, query);
    return resultOf(await this.#pool.read(query.sql, query.parameters.map(sentValue)));
  }

  // biome-ignore lint/correctness/useYield: the interface requires a generator, and the vault streams no rows.
  async *streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('queries are not streamed');
  }
}

/** One user at a time, in the order in which they came. */
class Turns {
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;

  async take(): Promise<void> {
    if (this.#isTaken) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#isTaken = true;
  }

  pass(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#isTaken = false;
    else next();
  }
}
