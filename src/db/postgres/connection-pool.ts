/**
 * The vault's connections to PostgreSQL: opened when needed, up to a number, again and again after the server was gone.
 * Who waits longer than a few seconds for one gets a StorageError; a dead server is asked ever more rarely.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { StorageError } from '../../base/storage-error.ts';
import type { World } from '../../base/world.ts';
import { openConnection } from './connection-opening.ts';
import { type ConnectionUrl, displayUrl } from './connection-url.ts';
import type {
  PostgresConnection,
  ServerLimits,
  StatementResult,
  TransactionKind,
} from './postgres-connection.ts';
import { endsConnection, isPermanent } from './storage-error.ts';

export type PoolOptions = {
  readonly url: ConnectionUrl;
  readonly world: World;
  /** At most so many connections at once. */
  readonly size?: number;
  readonly limits?: Partial<ServerLimits>;
  /** How long a caller waits for a connection. */
  readonly patienceMs?: number;
  /** Whether statements are sent before those before them have ended, in the same order. */
  readonly isPipelined?: boolean;
};

const defaultLimits: ServerLimits = { statementMs: 10_000, lockMs: 5000, idleInTransactionMs: 10_000 };
const usual = { size: 10, patienceMs: 5000, isPipelined: false } as const;
const shortPatienceMs = 1000;
const firstPauseMs = 50;
const maxPauseMs = 2000;

type Waiter = {
  readonly resolve: (connection: PostgresConnection) => void;
  readonly reject: (error: unknown) => void;
};

export class ConnectionPool {
  readonly url: ConnectionUrl;
  readonly #options: Required<PoolOptions>;
  readonly #world: World;
  readonly #limits: ServerLimits;
  readonly #open = new Set<PostgresConnection>();
  /** The one used last is lent first, so that a quiet vault keeps few of them busy. */
  readonly #idle: PostgresConnection[] = [];
  readonly #waiters = new Set<Waiter>();
  readonly #ended = new AbortController();
  #opening = 0;
  #opened = 0;
  #failures = 0;
  #lastError: unknown;
  #isWatching = false;

  /** Opens nothing yet. */
  constructor(options: PoolOptions) {
    this.url = options.url;
    this.#world = options.world;
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#options = { ...usual, ...options, limits: this.#limits };
  }

  /** How many connections were opened so far. */
  get opened(): number {
    return this.#opened;
  }

  /** For messages: how many connections there are, and how many of them are in use. */
  get counts(): { readonly open: number; readonly busy: number; readonly waiting: number } {
    const open = this.#open.size;
    return { open, busy: open - this.#idle.length, waiting: this.#waiters.size };
  }

  /**
   * Executes one statement that only reads, outside of transactions; once more if the connection turns out to be dead.
   * Rejects with StorageError, OperatorError if that needs a person, or the error itself if it is a bug.
   */
  read(sql: string, values: readonly unknown[] = []): Promise<StatementResult> {
    return this.onLiving(async (connection) => {
      const result = await connection.read(sql, values);
      this.release(connection);
      return result;
    });
  }

  /**
   * A connection on which a transaction has begun; hand it back with `release` after its commit or rollback. Rejects
   * like `read`. A statement of it may take `statementMs` instead of the usual time.
   */
  begin(kind: TransactionKind = 'write', statementMs?: number): Promise<PostgresConnection> {
    return this.onLiving(async (connection) => {
      await connection.begin(kind, statementMs);
      return connection;
    });
  }

  /** Takes a connection back; one that is broken, or still in a transaction, is closed. */
  release(connection: PostgresConnection): void {
    if (!connection.isReusable || this.#ended.signal.aborted) {
      this.#discard(connection);
      return;
    }
    const [waiter] = this.#waiters;
    if (waiter === undefined) {
      this.#idle.push(connection);
      return;
    }
    this.#waiters.delete(waiter);
    waiter.resolve(connection);
  }

  /** Closes all connections, and refuses callers that wait for one. */
  async close(): Promise<void> {
    this.#ended.abort();
    for (const waiter of this.#waiters) waiter.reject(new Error('the database is closed'));
    this.#waiters.clear();
    for (const connection of [...this.#open]) this.#discard(connection);
  }

  /**
   * Works with a connection, once more if it turns out to be dead: then its neighbors may be, too, and all are
   * replaced. `work` hands it back with `release`, or to the caller; where it fails, the pool has it.
   */
  async onLiving<T>(work: (connection: PostgresConnection) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const connection = await this.#acquire();
      try {
        return await work(connection);
      } catch (error) {
        this.release(connection);
        if (attempt === 2 || !endsConnection(error)) throw error;
        for (const idle of [...this.#idle]) this.#discard(idle);
      }
    }
  }

  async #acquire(): Promise<PostgresConnection> {
    if (this.#ended.signal.aborted) throw new Error('the database is closed');
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const settled = new AbortController();
    try {
      return await new Promise<PostgresConnection>((resolve, reject) => {
        const waiter = { resolve, reject };
        this.#waiters.add(waiter);
        // While the server is known to be away, its callers are told soon: they have better things to do than to wait.
        const { patienceMs } = this.#options;
        const patience = this.#failures > 0 ? Math.min(patienceMs, shortPatienceMs) : patienceMs;
        void this.#world.sleep(patience, settled.signal).then(() => {
          if (this.#waiters.delete(waiter)) reject(this.#tooLate());
        });
        this.#grow();
      });
    } finally {
      settled.abort();
    }
  }

  #tooLate(): unknown {
    if (this.#lastError !== undefined) return this.#lastError;
    const { busy } = this.counts;
    if (busy < this.#options.size) {
      return new StorageError(`PostgreSQL did not answer in time (${displayUrl(this.url)})`, {
        hint: 'Check the host of the database URL, the network, and firewalls.',
      });
    }
    return new StorageError(`all ${busy} connections to PostgreSQL are in use (${displayUrl(this.url)})`, {
      hint: 'Retry in a moment. If the error persists, allow more connections, or check the load of the server.',
    });
  }

  /** Opens another connection for who waits. While the server is gone, one attempt at a time is enough. */
  #grow(): void {
    const most = this.#failures > 0 ? 1 : Math.min(this.#waiters.size, this.#options.size - this.#open.size);
    if (this.#opening >= most || this.#open.size + this.#opening >= this.#options.size) return;
    this.#opening += 1;
    void this.#openOne().finally(() => {
      this.#opening -= 1;
      if (this.#waiters.size > 0 && !this.#ended.signal.aborted) this.#grow();
    });
  }

  async #openOne(): Promise<void> {
    if (this.#failures > 0) await this.#world.sleep(this.#pauseMs(), this.#ended.signal);
    // They may have given up meanwhile.
    if (this.#waiters.size === 0 || this.#ended.signal.aborted) return;
    const failures = this.#failures;
    try {
      const connection = await openConnection({
        url: this.url,
        limits: this.#limits,
        world: this.#world,
        isPipelined: this.#options.isPipelined,
        onEnd: (ended) => this.#discard(ended),
      });
      this.#failures = 0;
      this.#lastError = undefined;
      this.#opened += 1;
      this.#open.add(connection);
      if (!this.#isWatching) void this.#watch();
      this.release(connection);
    } catch (error) {
      // Attempts that ran side by side count as one.
      this.#failures = failures + 1;
      this.#lastError = this.#judged(error);
      if (isPermanent(this.#lastError)) this.#refuseAll(this.#lastError);
    }
  }

  /** What needs a person at the start may pass later: the server let this pool in before. */
  #judged(error: unknown): unknown {
    if (!(error instanceof OperatorError)) return new StorageError(String(error), { cause: error });
    if (this.#opened === 0 || !isPermanent(error)) return error;
    const { message, hint } = error;
    return new StorageError(message, { ...(hint !== undefined && { hint }), cause: error });
  }

  #refuseAll(error: unknown): void {
    for (const waiter of this.#waiters) waiter.reject(error);
    this.#waiters.clear();
  }

  /** Half of it by chance, so that nodes do not all come back in the same moment. */
  #pauseMs(): number {
    const most = Math.min(maxPauseMs, firstPauseMs * 2 ** Math.min(this.#failures - 1, 10));
    return most / 2 + (most / 2) * (this.#world.randomBytes(1)[0] ?? 0) * (1 / 256);
  }

  #discard(connection: PostgresConnection): void {
    if (!this.#open.delete(connection)) return;
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
    connection.close();
    if (this.#waiters.size > 0 && !this.#ended.signal.aborted) this.#grow();
  }

  /** Ends connections whose server is silent for too long. Runs while there are any. */
  async #watch(): Promise<void> {
    this.#isWatching = true;
    while (this.#open.size > 0) {
      await this.#world.sleep(1000, this.#ended.signal);
      if (this.#ended.signal.aborted) break;
      for (const connection of [...this.#open]) connection.countSecond();
    }
    this.#isWatching = false;
  }
}
