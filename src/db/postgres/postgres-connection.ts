/**
 * One connection to a PostgreSQL server that takes writes. Behind a pooler that hands out sessions by transaction
 * (PgBouncer), nothing is relied on that outlives a transaction; a session of our own keeps its settings and prepared
 * statements.
 */
import type { Client, QueryResult } from 'pg';
import { StorageError } from '../../base/storage-error.ts';
import type { ServerState } from './server-safety.ts';
import { StatementNames } from './statement-names.ts';
import { endsConnection, storageErrorFrom } from './storage-error.ts';

/** Rows that a statement returned, and how many it inserted, changed or deleted; undefined if it only reads. */
export type StatementResult = {
  readonly rows: readonly unknown[];
  readonly changes: number | undefined;
};

/** `write` sees what others commit meanwhile, statement by statement; `snapshot` only reads, and always the same. */
export type TransactionKind = 'write' | 'snapshot';

/** How long the server may take, in milliseconds. */
export type ServerLimits = {
  readonly statementMs: number;
  /** For a lock that another transaction holds. */
  readonly lockMs: number;
  /** Between two statements of a transaction, before the server ends it with its locks. */
  readonly idleInTransactionMs: number;
};

export type SessionFacts = {
  readonly state: ServerState;
  /** The server is another process than the one that answered: a pooler is between. */
  readonly isPooled: boolean;
  /** Statements are sent before those before them have ended. */
  readonly isPipelined: boolean;
  /** The server, for people. */
  readonly place: string;
  /** Whether the connection has TLS. */
  readonly isEncrypted: boolean;
  /** Whether it is a unix socket. */
  readonly isSocket: boolean;
  readonly schema: string;
  readonly limits: ServerLimits;
};

const begins: Readonly<Record<TransactionKind, string>> = {
  write: 'begin isolation level read committed, read write',
  snapshot: 'begin isolation level repeatable read, read only',
};
/** The server ends a statement at its limit; if that message does not arrive, nothing else will. */
const graceSeconds = 3;
/** At COMMIT these say that it was rolled back; after all others it may be durable. */
const rolledBack = /^(23|40001$|40P01$|55P03$|57014$)/;
const changing = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

/** Statements that make a session, or with `local` a transaction, safe and limited. */
export function sessionSettings(schema: string, limits: ServerLimits, scope: 'session' | 'local'): string {
  return [
    // Temporary objects come last; pg_catalog is always first.
    `search_path = "${schema}", pg_temp`,
    `statement_timeout = ${limits.statementMs}`,
    `lock_timeout = ${limits.lockMs}`,
    `idle_in_transaction_session_timeout = ${limits.idleInTransactionMs}`,
    'standard_conforming_strings = on',
    // Transactions that write say so when they begin.
    ...(scope === 'session' ? ['default_transaction_read_only = on'] : []),
  ]
    .map((setting) => `set ${scope} ${setting}`)
    .join('; ');
}

export class PostgresConnection {
  readonly facts: SessionFacts;
  readonly #client: Client;
  readonly #names: StatementNames | undefined;
  #isUsable = true;
  #isWarned = false;
  #isInTransaction = false;
  /** What made the transaction fail; PostgreSQL answers all later statements with 25P02. */
  #firstError: unknown;
  /** Answers that are waited for, and how long the server has been silent meanwhile. */
  #pending = 0;
  #silentSeconds = 0;
  #limitMs: number;

  /** A client that is connected; `onEnd` is called when it can no longer be used. */
  constructor(client: Client, facts: SessionFacts, onEnd: (connection: PostgresConnection) => void) {
    this.#client = client;
    this.facts = facts;
    this.#limitMs = facts.limits.statementMs;
    this.#names = facts.isPooled ? undefined : new StatementNames();
    // The statements of a read through a pooler are sent together.
    (client as unknown as { pipeline: boolean }).pipeline = facts.isPooled || facts.isPipelined;
    const end = () => {
      this.#isUsable = false;
      onEnd(this);
    };
    client.on('error', end);
    client.on('end', end);
    client.on('notice', ({ code }) => {
      if (code?.startsWith('01')) this.#isWarned = true;
    });
  }

  /** Whether others may use it when this user is done. */
  get isReusable(): boolean {
    return this.#isUsable && !this.#isInTransaction;
  }

  /**
   * Executes one statement outside of transactions, which only reads. Rejects with StorageError, or the error itself if
   * it is a bug.
   */
  async read(sql: string, values: readonly unknown[]): Promise<StatementResult> {
    return this.#watched(async () => {
      if (!this.facts.isPooled) return this.#send(sql, values);
      const { schema, limits } = this.facts;
      const text = `begin read only; ${sessionSettings(schema, limits, 'local')}`;
      const [begun, done, ended] = await Promise.allSettled([
        this.#client.query(text),
        this.#send(sql, values),
        this.#client.query('commit'),
      ]);
      for (const one of [begun, done, ended]) if (one.status === 'rejected') throw one.reason;
      return (done as PromiseFulfilledResult<StatementResult>).value;
    });
  }

  /** Begins a transaction, in which a statement may take `statementMs` instead of the usual time. */
  async begin(kind: TransactionKind, statementMs?: number): Promise<void> {
    const { isPooled, schema, limits } = this.facts;
    this.#firstError = undefined;
    this.#limitMs = statementMs ?? limits.statementMs;
    const own = { ...limits, statementMs: this.#limitMs };
    const longer = statementMs === undefined ? '' : `; set local statement_timeout = ${statementMs}`;
    const settings = isPooled ? `; ${sessionSettings(schema, own, 'local')}` : longer;
    this.#isInTransaction = true;
    await this.#watched(() => this.#client.query(`${begins[kind]}${settings}`));
  }

  /** Executes one statement of the transaction. Rejects like `read`. */
  async execute(sql: string, values: readonly unknown[]): Promise<StatementResult> {
    if (!this.#isInTransaction) throw new Error('not in a transaction');
    return this.#watched(() => this.#send(sql, values));
  }

  /**
   * Resolves once the transaction is durable, on the standbys too where the server waits for them. Rejects with
   * StorageError if that is unknown: then it may be durable or not.
   */
  async commit(): Promise<void> {
    this.#isWarned = false;
    let result: QueryResult;
    try {
      result = await this.#watched(() => this.#client.query('commit'));
    } catch (error) {
      const { cause } = error as { cause?: { code?: unknown } };
      const { code } = (cause ?? error) as { code?: unknown };
      if (typeof code === 'string' && rolledBack.test(code)) {
        this.#isInTransaction = false;
        throw error;
      }
      throw this.#unknownOutcome(error);
    }
    // Replication was waited for in vain: the server says so, and then that it has committed.
    if (this.#isWarned) throw this.#unknownOutcome(undefined);
    this.#isInTransaction = false;
    if (result.command !== 'COMMIT') {
      throw this.#firstError ?? new Error('a statement of the transaction failed before its end');
    }
  }

  /** Never rejects: the server rolls back what a broken connection leaves. */
  async rollback(): Promise<void> {
    try {
      if (this.#isUsable) await this.#watched(() => this.#client.query('rollback'));
      this.#isInTransaction = false;
    } catch {
      // The connection is not reused.
      this.#isUsable = false;
    }
  }

  /** Called once a second: ends the connection if the server has been silent for longer than it may. */
  countSecond(): void {
    if (this.#pending === 0) return;
    this.#silentSeconds += 1;
    if (this.#silentSeconds * 1000 <= this.#limitMs + graceSeconds * 1000) return;
    this.destroy(new Error('timeout expired'));
  }

  /** Ends it politely, or at once if it is in use. */
  close(): void {
    this.#isUsable = false;
    if (this.#pending === 0) {
      this.#client.end().catch(() => {
        // It has ended already.
      });
    } else this.destroy(new Error('Connection terminated'));
  }

  /** Ends it at once; what it executes rejects. */
  destroy(reason: Error): void {
    this.#isUsable = false;
    this.#client.connection.stream.destroy(reason);
  }

  async #send(sql: string, values: readonly unknown[]): Promise<StatementResult> {
    const name = this.#names?.nameOf(sql);
    const { rows, rowCount, command } = await this.#client.query({
      text: sql,
      values: values as unknown[],
      ...(name !== undefined && { name }),
    });
    return { rows, changes: changing.has(command) ? (rowCount ?? 0) : undefined };
  }

  async #watched<T>(work: () => Promise<T>): Promise<T> {
    if (this.#pending === 0) this.#silentSeconds = 0;
    this.#pending += 1;
    try {
      return await work();
    } catch (error) {
      throw this.#failed(error);
    } finally {
      this.#pending -= 1;
      this.#silentSeconds = 0;
    }
  }

  #failed(error: unknown): unknown {
    const { code } = error as { code?: unknown };
    if (code === '25P02' && this.#firstError !== undefined) return this.#firstError;
    if (endsConnection(error)) this.#isUsable = false;
    const known = storageErrorFrom(error, this.facts.place);
    if (this.#isInTransaction) this.#firstError ??= known;
    return known;
  }

  #unknownOutcome(cause: unknown): StorageError {
    this.destroy(new Error('Connection terminated'));
    return new StorageError(
      `PostgreSQL did not confirm a commit; the change may be durable or not (${this.facts.place})`,
      { hint: 'See the log of the server. Look whether the change is there before you repeat it.', cause },
    );
  }
}
