/** A map that forgets what was put into it longest ago, so that a flood of strangers does not take all memory. */

export class RecentMap<K, V> {
  readonly #values = new Map<K, V>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
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
    const oldest = this.#values.keys().next();
    if (!oldest.done) this.#values.delete(oldest.value);
  }

  delete(key: K): void {
    this.#values.delete(key);
  }
}
