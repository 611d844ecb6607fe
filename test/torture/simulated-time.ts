/**
 * A year that passes as fast as the vault can work: the clock jumps from one due time to the next, and stands still
 * until the jobs of the vault and the clients have finished their work at that time.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import { TestWorld } from '../harness/test-world.ts';

/** The limit of real time for one moment of the simulation, in milliseconds. */
const patience = 60_000;

export class SimulatedTime {
  readonly world: TestWorld;
  /** How often the clock was moved. */
  moves = 0;
  #questions:
    | {
        readonly database: BetterSqlite3.Database;
        readonly open: BetterSqlite3.Statement;
        readonly due: BetterSqlite3.Statement;
      }
    | undefined;
  #jobs = 0;
  readonly #pauses = new Set<{ readonly until: number; readonly end: () => void }>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #failures: unknown[] = [];

  constructor(start: string) {
    this.world = new TestWorld(start);
  }

  /** Waits for this many jobs of a vault from now on, whose database is read from outside. */
  attend(path: string, jobs: number): void {
    const database = new BetterSqlite3(path, { readonly: true });
    this.#jobs = jobs;
    this.#questions = {
      database,
      open: database.prepare("select id from renewals where status in ('queued', 'running') limit 1").pluck(),
      due: database.prepare('select min(next_renewal_at) from certificates').pluck(),
    };
  }

  /** No vault runs any more. */
  leave(): void {
    this.#questions?.database.close();
    this.#questions = undefined;
  }

  /** A client's wait between two attempts, which moves the clock when no one else is busy. */
  readonly pause = async (ms: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#pauses.add({ until: this.world.now() + ms, end: resolve });
    await promise;
  };

  /** A run of a client; the current moment lasts until it is done. */
  begin(run: Promise<unknown>): void {
    const watched = run
      .catch((error: unknown) => {
        this.#failures.push(error);
      })
      .finally(() => this.#running.delete(watched));
    this.#running.add(watched);
  }

  /** Lets time pass until `moment`, at most `longest` at once and never past a due time. */
  async until(moment: number, longest: number): Promise<void> {
    await this.settle();
    while (this.world.now() < moment) {
      const now = this.world.now();
      const due = this.#nextDue();
      this.#advanceTo(Math.min(moment, now + longest, Math.max(due, now + 1000)));
      await this.settle();
    }
  }

  /** Waits until all runs of clients are done and all jobs sleep with an empty queue. Throws errors of runs. */
  async settle(): Promise<void> {
    const giveUpAt = performance.now() + patience;
    for (let looks = 0; ; looks += 1) {
      await this.world.turn();
      if (this.#failures.length > 0) throw this.#failures[0];
      if (this.#running.size > 0 && this.#pauses.size === this.#running.size && this.#isIdle()) {
        this.#advanceTo(Math.min(...[...this.#pauses].map(({ until }) => until)));
        continue;
      }
      if (this.#running.size === 0 && this.#isIdle()) return;
      // Key generation and network traffic take real time; spinning would only slow them down.
      if (looks % 20 === 19) await delay(1);
      assert.ok(performance.now() < giveUpAt, 'a moment of the simulation does not end');
    }
  }

  #advanceTo(moment: number): void {
    this.moves += 1;
    this.world.advance(Math.max(0, moment - this.world.now()));
    for (const pause of [...this.#pauses]) {
      if (pause.until > this.world.now()) continue;
      this.#pauses.delete(pause);
      pause.end();
    }
  }

  #isIdle(): boolean {
    if (this.#questions === undefined) return true;
    return this.world.asleep === this.#jobs && this.#questions.open.get() === undefined;
  }

  #nextDue(): number {
    const due = this.#questions?.due.get();
    return typeof due === 'number' ? due : Number.POSITIVE_INFINITY;
  }
}
