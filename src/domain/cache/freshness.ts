/**
 * Memory of a running server that is never older than the database: caches that are dropped as soon as any process has
 * committed a change to what they are made of.
 */

import { LRUCache } from 'lru-cache';
import { detached } from '../../base/detached.ts';
import type { World } from '../../base/world.ts';
import type { Database } from '../../db/database.ts';

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

  /** The generation last looked up. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * Looks whether anything has changed. What caches answer after this is at least as new as the moment of the call;
   * every request calls it once, before it asks them anything. One look, at the end of a turn of the event loop, serves
   * all who have called in that turn.
   */
  look(): Promise<void> {
    this.#looking ??= this.#lookAfterTurn();
    return this.#looking;
  }

  async #lookAfterTurn(): Promise<void> {
    await this.#world.turn();
    // On a server a look takes longer than a turn: the callers of many turns then share the next one.
    if (this.#inFlight !== undefined) await this.#inFlight;
    // Later callers may know of a newer change than the one that this query sees.
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

/** A bounded cache that forgets everything when the generation moves on. */
export class FreshCache<K extends string, V extends NonNullable<unknown>> {
  readonly #freshness: Freshness;
  readonly #values: LRUCache<string, V>;
  #generation = -1;

  constructor(freshness: Freshness, limit: number) {
    this.#freshness = freshness;
    this.#values = new LRUCache({ max: limit });
  }

  /**
   * The remembered value, or the loaded one, which is remembered unless the generation moved on meanwhile. `undefined`
   * is never remembered: requests for objects that do not exist must not evict those that do.
   */
  async get(key: K, load: () => Promise<V | undefined>): Promise<V | undefined> {
    const known = this.peek(key);
    if (known !== undefined) return known;
    const began = this.#generation;
    const value = await load();
    if (value !== undefined) this.put(key, value, began);
    return value;
  }

  /** The remembered value. */
  peek(key: K): V | undefined {
    this.#forgetWhenStale();
    // Keeping the order of use would cost more than the lookup; without it, the oldest value is forgotten first.
    return this.#values.peek(key);
  }

  /** Remembers what was found out in the generation `began`, unless that has moved on. */
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
