/** A map that forgets what was put into it longest ago, so that a flood of strangers does not take all memory. */

export class RecentMap<K, V> {
  readonly #values = new Map<K, V>();
  /**
   * Always before what was put longest ago: what it yields is deleted at once. A new iterator would begin with the holes
   * that the deleted ones have left, of which there are thousands.
   */
  readonly #oldest: MapIterator<K>;
  readonly #most: number;

  /** Holds `most` values, one at least. */
  constructor(most: number) {
    this.#most = most;
    this.#oldest = this.#values.keys();
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: K): V | undefined {
    return this.#values.get(key);
  }

  /** Puts the value last, and forgets the first where there are too many. */
  set(key: K, value: V): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size <= this.#most) return;
    const oldest = this.#oldest.next();
    if (!oldest.done) this.#values.delete(oldest.value);
  }

  delete(key: K): void {
    this.#values.delete(key);
  }
}
