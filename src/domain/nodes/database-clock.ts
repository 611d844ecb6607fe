/**
 * The clock of a database that several machines share. Their own clocks differ, so what one of them writes and another
 * reads, such as when a lease expires, is in the time of the database.
 */
import { second } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';

/** The time of the database, in UTC milliseconds. */
export type DatabaseNow = () => Promise<number> | number;

/** What is present only where several nodes share one database. */
export type SharedContext = {
  /**
   * The clock of the shared database; undefined where only this machine can use the database, and this server leads
   * always.
   */
  readonly sharedClock: DatabaseClock | undefined;
};

/** An answer that took longer says too little about the time. */
const maxAnswer = second;

/** A smaller difference stays, so that the network does not move the time back and forth. */
const tolerance = 100;

export class DatabaseClock {
  readonly #machine: World;
  #ahead: number | undefined;
  /** Asks the database. */
  readonly databaseNow: DatabaseNow;
  /** The world of this machine with the time of the database, as of the last measurement. */
  readonly world: World;

  constructor(machine: World, databaseNow: DatabaseNow) {
    this.#machine = machine;
    this.databaseNow = databaseNow;
    const { elapsed, sleep, turn, randomBytes } = machine;
    this.world = { now: () => machine.now() - this.ahead, elapsed, sleep, turn, randomBytes };
  }

  /** Milliseconds by which the clock of this machine is ahead of that of the database, as of the last measurement. */
  get ahead(): number {
    return this.#ahead ?? 0;
  }

  /** Compares the clocks, and returns the time of the database. Rejects if the database does not answer. */
  async measure(): Promise<number> {
    const before = this.#machine.now();
    const now = await this.databaseNow();
    const after = this.#machine.now();
    const ahead = Math.round((before + after) / 2 - now);
    const isPrecise = after >= before && after - before <= maxAnswer;
    if (this.#ahead === undefined || (isPrecise && Math.abs(ahead - this.#ahead) > tolerance)) {
      this.#ahead = ahead;
    }
    return now;
  }
}
