/** How often something may happen: some times at once, and then again as time goes by, by whatever name it is counted. */

import { LRUCache } from 'lru-cache';
import { minute } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';

export type Pace = {
  /** So many at once. */
  readonly burst: number;
  /** So many more in each minute. */
  readonly perMinute: number;
};

/** Counted in parts of one, a minute's worth of milliseconds, so that no sum is rounded. */
type Bucket = { readonly left: number; readonly at: number };

export class TokenBuckets {
  readonly #world: World;
  readonly #pace: Pace;
  readonly #buckets: LRUCache<string, Bucket>;

  /** Of more than `most` names, those that were counted longest ago begin anew. */
  constructor(world: World, pace: Pace, most = 10_000) {
    this.#world = world;
    this.#pace = pace;
    this.#buckets = new LRUCache({ max: most });
  }

  /** How many names are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one for this name: 0 where there was one, and else the milliseconds until there is. */
  take(name: string): number {
    const now = this.#world.now();
    const there = this.#left(name, now);
    const isThere = there >= minute;
    this.#buckets.set(name, { left: isThere ? there - minute : there, at: now });
    return isThere ? 0 : Math.ceil((minute - there) / this.#pace.perMinute);
  }

  /** Counts what another process has taken, also where it was more than there is: what comes later makes up for it. */
  takenElsewhere(name: string, times: number): void {
    const now = this.#world.now();
    const left = Math.max(-this.#pace.burst * minute, this.#left(name, now) - times * minute);
    this.#buckets.set(name, { left, at: now });
  }

  #left(name: string, now: number): number {
    const { burst, perMinute } = this.#pace;
    const { left, at } = this.#buckets.get(name) ?? { left: burst * minute, at: now };
    // When the clock was set back, nothing is added, and nobody waits until it has caught up.
    return Math.min(burst * minute, left + Math.max(0, now - at) * perMinute);
  }
}
