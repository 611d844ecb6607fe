/** Counts events by name and says which are among the first of their hour. */

import { hour } from '../../../base/duration.ts';
import type { World } from '../../../base/world.ts';
import { type BoundedCache, boundedCache } from '../../cache/bounded-cache.ts';

type Window = { readonly since: number; readonly count: number };

export class HourlyCounts {
  readonly #world: World;
  readonly #first: number;
  readonly #windows: BoundedCache<string, Window>;

  /** The first `first` events of a name per hour pass. With more than `most` names, the oldest counts are dropped. */
  constructor(world: World, first: number, most = 10_000) {
    this.#world = world;
    this.#first = first;
    this.#windows = boundedCache(most);
  }

  /**
   * Counts one event. Returns 0 if it is among the first of its hour, otherwise the milliseconds until the next hour.
   */
  take(name: string): number {
    const { since, count } = this.#add(name);
    return count <= this.#first ? 0 : since + hour - this.#world.now();
  }

  #add(name: string): Window {
    const now = this.#world.now();
    const known = this.#windows.get(name);
    // An hour that starts in the future means that the clock was set back.
    const isOpen = known !== undefined && now >= known.since && now < known.since + hour;
    const window = isOpen ? { since: known.since, count: known.count + 1 } : { since: now, count: 1 };
    this.#windows.set(name, window);
    return window;
  }
}
