/** The look that each node takes before it answers: whether anything has changed. */
import type { ConnectionPool } from './connection-pool.ts';

const lookUpGeneration = "select value as generation from settings where key = 'generation'";

const lookUpTime = 'select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now';

/** More than the generation of any database, so that numbers of different connections differ. */
const perConnection = 2 ** 40;

export class DatabaseLook {
  readonly #pool: ConnectionPool;

  /** The pool has one connection. */
  constructor(pool: ConnectionPool) {
    this.#pool = pool;
  }

  /**
   * A number that is another one whenever something was committed since the last call, and on each new connection:
   * another server may answer there, which has lost what the one before had confirmed. Rejects with StorageError.
   */
  async generation(): Promise<number> {
    const { rows } = await this.#pool.read(lookUpGeneration);
    const [row] = rows as { generation: number }[];
    if (row === undefined) throw new Error('the database has no generation');
    return this.#pool.opened * perConnection + row.generation;
  }

  /** The time of the server, in UTC milliseconds. Rejects with StorageError. */
  async now(): Promise<number> {
    const { rows } = await this.#pool.read(lookUpTime);
    const [row] = rows as { now: number }[];
    if (row === undefined) throw new Error('the server did not say what time it is');
    return row.now;
  }
}
