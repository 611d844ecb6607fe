/** A world with a clock that the test sets. Sleepers wake only when it is moved past their time. */
import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { World } from '../../src/base/world.ts';

type Sleeper = { readonly until: number; readonly wake: () => void };

export class TestWorld implements World {
  readonly isSet = true;
  #now: number;
  #elapsed = 0;
  readonly #sleepers = new Set<Sleeper>();
  readonly #watchers = new Set<() => void>();

  constructor(start: string | number = '2026-11-21T12:00:00Z') {
    this.#now = typeof start === 'number' ? start : Date.parse(start);
  }

  readonly now = (): number => this.#now;
  readonly elapsed = (): number => this.#elapsed;
  readonly randomBytes = (size: number): Buffer => randomBytes(size);

  readonly turn = async (): Promise<void> => {
    await nextTurn();
  };

  readonly sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    if (signal?.aborted === true) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const sleeper = { until: this.#now + ms, wake };
    this.#sleepers.add(sleeper);
    signal?.addEventListener('abort', wake, { once: true });
    for (const look of [...this.#watchers]) look();
    return promise.finally(() => {
      this.#sleepers.delete(sleeper);
      signal?.removeEventListener('abort', wake);
    });
  };

  /** The number of current sleepers. */
  get asleep(): number {
    return this.#sleepers.size;
  }

  /** Milliseconds until the first of them wakes; infinite without one. */
  get soonest(): number {
    return Math.min(...[...this.#sleepers].map(({ until }) => until)) - this.#now;
  }

  /** Lets time pass and wakes due sleepers. A negative `ms` sets the clock back, and no time passes. */
  advance(ms: number): void {
    this.#now += ms;
    this.#elapsed += Math.max(0, ms);
    for (const sleeper of [...this.#sleepers]) {
      if (sleeper.until > this.#now) continue;
      // At once, so that `sleeping` waits until it sleeps again.
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
  }

  /** Resolves when `count` sleepers wait at the same time. */
  async sleeping(count: number): Promise<void> {
    if (this.#sleepers.size >= count) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = () => {
      if (this.#sleepers.size >= count) resolve();
    };
    this.#watchers.add(look);
    await promise.finally(() => this.#watchers.delete(look));
  }
}
