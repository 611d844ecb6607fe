/** Token buckets by name: a burst, then a steady rate. */

import { minute } from '../../../base/duration.ts';
import type { World } from '../../../base/world.ts';
import { type BoundedCache, boundedCache } from '../../cache/bounded-cache.ts';

export type Pace = {
  /** Tokens in a full bucket. */
  readonly burst: number;
  /** Tokens added per minute. */
  readonly perMinute: number;
};

/** `left` counts in 1/60,000 of a token (milliseconds of a minute), so that no sum is rounded. */
type Bucket = { readonly left: number; readonly at: number };

export class TokenBuckets {
  readonly #world: World;
  readonly #pace: Pace;
  readonly #buckets: BoundedCache<string, Bucket>;

  /** With more than `most` names, the oldest buckets are dropped. */
  constructor(world: World, pace: Pace, most = 10_000) {
    this.#world = world;
    this.#pace = pace;
    this.#buckets = boundedCache(most);
  }

  /** The number of buckets. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes a token. Returns 0 if there was one, otherwise the milliseconds until there is. */
  take(name: string): number {
    const now = this.#world.now();
    const there = this.#left(name, now);
    const isThere = there >= minute;
    this.#buckets.set(name, { left: isThere ? there - minute : there, at: now });
    return isThere ? 0 : Math.ceil((minute - there) / this.#pace.perMinute);
  }

  #left(name: string, now: number): number {
    const { burst, perMinute } = this.#pace;
    const { left, at } = this.#buckets.get(name) ?? { left: burst * minute, at: now };
    // A clock that was set back adds nothing, and takes nothing away.
    return Math.min(burst * minute, left + Math.max(0, now - at) * perMinute);
  }
}
