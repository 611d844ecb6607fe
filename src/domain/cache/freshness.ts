/**
 * Caches of a running server that are never older than the database: they are dropped as soon as any process has
 * committed a change to their sources.
 */

import { detached } from '../../base/detached.ts';
import type { World } from '../../base/world.ts';
import type { Database } from '../../db/database.ts';
import { type BoundedCache, boundedCache } from './bounded-cache.ts';

export class Freshness {
  readonly #db: Database;
  readonly #world: World;
  #generation = -1;
  #looking: Promise<void> | undefined;
  #inFlight: Promise<void> | undefined;

  constructor(db: Database, world: World) {
    this.#db = db;
    this.#world = world;
  }

  /** The generation last read. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * Checks whether anything has changed. Afterward, cached values are at least as new as the call; every request calls
   * it once before it reads a cache. All calls in one turn of the event loop share one query at its end.
   */
  look(): Promise<void> {
    this.#looking ??= this.#lookAfterTurn();
    return this.#looking;
  }

  async #lookAfterTurn(): Promise<void> {
    await this.#world.turn();
    // On a server a query takes longer than a turn: the calls of many turns then share the next one.
    if (this.#inFlight !== undefined) await this.#inFlight;
    // Later callers may rely on a newer change than this query sees.
    this.#looking = undefined;
    const generation = this.#db.generation();
    this.#inFlight = generation.then(
      () => this.#land(),
      () => this.#land(),
    );
    this.#generation = await generation;
  }

  #land(): void {
    this.#inFlight = undefined;
  }
}

/** A bounded cache that is cleared when the generation changes. */
export class FreshCache<K extends string, V extends NonNullable<unknown>> {
  readonly #freshness: Freshness;
  readonly #values: BoundedCache<string, V>;
  #generation = -1;

  constructor(freshness: Freshness, limit: number) {
    this.#freshness = freshness;
    this.#values = boundedCache(limit);
  }

  /**
   * The cached value, or the loaded one, which is cached unless the generation changed meanwhile. `undefined` is never
   * cached: requests for objects that do not exist must not evict those that do.
   */
  async get(key: K, load: () => Promise<V | undefined>): Promise<V | undefined> {
    const known = this.peek(key);
    if (known !== undefined) return known;
    const began = this.#generation;
    const value = await load();
    if (value !== undefined) this.put(key, value, began);
    return value;
  }

  /** The cached value. */
  peek(key: K): V | undefined {
    this.#forgetWhenStale();
    // Tracking the order of use would cost more than the lookup; without it, the oldest value is evicted first.
    return this.#values.peek(key);
  }

  /** Caches a value that was loaded in the generation `began`, unless that is over. */
  put(key: K, value: V, began: number): void {
    this.#forgetWhenStale();
    if (this.#generation === began) this.#values.set(detached(key), value);
  }

  #forgetWhenStale(): void {
    if (this.#generation === this.#freshness.generation) return;
    this.#values.clear();
    this.#generation = this.#freshness.generation;
  }
}
