/** Counts events by name, and tells which are among the first of their hour. */

import { LRUCache } from 'lru-cache';
import { hour } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';

type Window = { readonly since: number; readonly count: number };

export class HourlyCounts {
  readonly #world: World;
  readonly #first: number;
  readonly #windows: LRUCache<string, Window>;

  /** `first` of each name count in an hour. Of more than `most` names, those that were counted longest ago begin again. */
  constructor(world: World, first: number, most = 10_000) {
    this.#world = world;
    this.#first = first;
    this.#windows = new LRUCache({ max: most });
  }

  /** Counts one: 0 where it is among the first of its hour, and else the milliseconds until the next hour begins. */
  take(name: string): number {
    const { since, count } = this.#add(name, 1);
    return count <= this.#first ? 0 : since + hour - this.#world.now();
  }

  /** Counts what another process has counted among the first. */
  takenElsewhere(name: string, times: number): void {
    this.#add(name, times);
  }

  #add(name: string, times: number): Window {
    const now = this.#world.now();
    const known = this.#windows.get(name);
    // An hour that begins in the future is one from before the clock was set back.
    const isOpen = known !== undefined && now >= known.since && now < known.since + hour;
    const window = isOpen ? { since: known.since, count: known.count + times } : { since: now, count: times };
    this.#windows.set(name, window);
    return window;
  }
}
