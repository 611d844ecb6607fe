/**
 * A clock for simulations with many concurrent tasks. It stands still while any task works, and jumps to the end of the
 * next wait when all tasks wait. Work outside the event loop (requests, the database) must be wrapped in `watched`, so
 * that its real duration does not count in the simulation.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import type { World } from '../../../src/base/world.ts';
import { isServerBusy } from '../../harness/issuance/server-activity.ts';
import { isThreadBusy } from './thread-activity.ts';

type Sleeper = { readonly until: number; readonly wake: () => void };

/** After this many turns of the event loop without activity, all tasks are waiting for the clock. */
const quietTurns = 40;

/** Milliseconds of real time without progress after which the simulation hangs. */
const patience = 60_000;

export class QuietClock implements World {
  readonly isSet = true;
  #now: number;
  #active = 0;
  /** Incremented by every activity. */
  #signs = 0;
  readonly #sleepers = new Set<Sleeper>();

  constructor(start = '2026-11-21T12:00:00Z') {
    this.#now = Date.parse(start);
  }

  readonly now = (): number => this.#now;
  readonly elapsed = (): number => this.#now;
  readonly randomBytes = (size: number): Buffer => randomBytes(size);

  readonly turn = async (): Promise<void> => {
    await this.watched(nextTurn());
  };

  readonly sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    this.#signs += 1;
    if (signal?.aborted === true) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const sleeper = { until: this.#now + ms, wake: resolve };
    this.#sleepers.add(sleeper);
    const wake = () => {
      this.#signs += 1;
      resolve();
    };
    signal?.addEventListener('abort', wake, { once: true });
    return promise.finally(() => {
      this.#sleepers.delete(sleeper);
      signal?.removeEventListener('abort', wake);
    });
  };

  /** Holds the clock until the work is done. */
  async watched<T>(work: Promise<T>): Promise<T> {
    this.#active += 1;
    this.#signs += 1;
    try {
      return await work;
    } finally {
      this.#active -= 1;
      this.#signs += 1;
    }
  }

  /** A function whose calls hold the clock. */
  watching<Args extends unknown[], T>(call: (...args: Args) => Promise<T>): (...args: Args) => Promise<T> {
    return (...args) => this.watched(call(...args));
  }

  /** Runs the clock until the work is done, and returns its result. */
  async run<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const over = work.finally(() => {
      isOver = true;
    });
    over.catch(() => {
      // It is returned below.
    });
    for (let since = performance.now(); ; ) {
      await this.#quiet();
      if (isOver) return over;
      const next = Math.min(...[...this.#sleepers].map(({ until }) => until));
      if (next === Number.POSITIVE_INFINITY) {
        assert(performance.now() - since < patience, 'the simulation hangs: no task waits for the clock');
        await delay(1);
        continue;
      }
      since = performance.now();
      this.#now = Math.max(this.#now, next);
      for (const sleeper of [...this.#sleepers]) if (sleeper.until <= this.#now) sleeper.wake();
    }
  }

  /** Resolves when there was no activity for a while. */
  async #quiet(): Promise<void> {
    for (let quiet = 0, signs = -1; quiet < quietTurns; ) {
      await nextTurn();
      const isWorking = this.#active > 0 || isServerBusy() || isThreadBusy();
      const isQuiet = !isWorking && this.#signs === signs;
      quiet = isQuiet ? quiet + 1 : 0;
      signs = this.#signs;
      if (isQuiet && quiet === quietTurns - 2) await delay(1);
    }
  }
}
