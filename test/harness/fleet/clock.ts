/**
 * The clock of a fleet simulation: it stands while anything runs and then jumps to the next moment somebody waits for,
 * in steps that gather waits which end close together.
 */
import { createHook } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { World } from '../../../src/base/world.ts';

type Sleeper = { readonly until: number; readonly wake: () => void };

/** Turns of the event loop in which nothing happened. */
const quietTurns = 3;

export class FleetClock implements World {
  #now: number;
  readonly #step: number;
  #signs = 0;
  readonly #sleepers = new Set<Sleeper>();
  readonly #jobs = new Set<number>();
  readonly #hook = createHook({
    // Of work in threads only keys and signatures: the rest is answered within a turn.
    init: (id, type) => {
      if (/^(KEYPAIRGEN|KEYGEN|SIGN|HASH|KEYEXPORT|DERIVEBITS|CIPHER).*REQUEST$/.test(type))
        this.#jobs.add(id);
    },
    after: (id) => {
      this.#jobs.delete(id);
    },
    trackPromises: false,
  } as Parameters<typeof createHook>[0]);

  /** `step` is the least by which the clock moves, in milliseconds: waits that end within it end together. */
  constructor(start: string, step: number) {
    this.#now = Date.parse(start);
    this.#step = step;
  }

  readonly now = (): number => this.#now;
  readonly elapsed = (): number => this.#now;
  readonly randomBytes = (size: number): Buffer => randomBytes(size);

  readonly turn = async (): Promise<void> => {
    this.#signs += 1;
    await nextTurn();
    this.#signs += 1;
  };

  readonly sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    this.#signs += 1;
    if (signal?.aborted === true) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => {
      this.#signs += 1;
      this.#sleepers.delete(sleeper);
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const sleeper = { until: this.#now + ms, wake };
    this.#sleepers.add(sleeper);
    signal?.addEventListener('abort', wake, { once: true });
    return promise;
  };

  /** Lets time pass until `moment`; `each` is called after each step. */
  async until(moment: number, each: () => void = () => undefined): Promise<void> {
    this.#hook.enable();
    try {
      await this.#quiet();
      while (this.#now < moment) {
        let next = moment;
        for (const { until } of this.#sleepers) next = Math.min(next, until);
        this.#now = Math.min(moment, Math.max(next, this.#now + this.#step));
        for (const sleeper of [...this.#sleepers]) if (sleeper.until <= this.#now) sleeper.wake();
        await this.#quiet();
        each();
      }
    } finally {
      this.#hook.disable();
    }
  }

  async #quiet(): Promise<void> {
    for (let quiet = 0, signs = -1; quiet < quietTurns; signs = this.#signs) {
      await nextTurn();
      quiet = this.#jobs.size === 0 && signs === this.#signs ? quiet + 1 : 0;
    }
  }
}
