/** How often something may happen: some times at once, and then again as time goes by, by whatever name it is counted. */
import { minute } from '../base/duration.ts';
import type { World } from '../base/world.ts';
import { RecentMap } from './recent-map.ts';

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
  readonly #buckets: RecentMap<string, Bucket>;

  /** Of more than `most` names, those that were counted longest ago begin anew. */
  constructor(world: World, pace: Pace, most = 10_000) {
    this.#world = world;
    this.#pace = pace;
    this.#buckets = new RecentMap(most);
  }

  /** How many names are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one for this name: 0 where there was one, and else the milliseconds until there is. */
  take(name: string): number {
    const { burst, perMinute } = this.#pace;
    const now = this.#world.now();
    const { left, at } = this.#buckets.get(name) ?? { left: burst * minute, at: now };
    // When the clock was set back, nothing is added, and nobody waits until it has caught up.
    const there = Math.min(burst * minute, left + Math.max(0, now - at) * perMinute);
    const isThere = there >= minute;
    this.#buckets.set(name, { left: isThere ? there - minute : there, at: now });
    return isThere ? 0 : Math.ceil((minute - there) / perMinute);
  }
}
