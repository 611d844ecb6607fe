/** A map that forgets what was put into it longest ago, so that a flood of strangers does not take all memory. */

export class RecentMap<K, V> {
  readonly #values = new Map<K, V>();
  /**
   * Always before what was put longest ago: what it yields is deleted at once. A new iterator would begin with the holes
   * that the deleted ones have left, of which there are thousands.
   */
  #oldest: MapIterator<K>;
  /** What was put since the iterator is in use. */
  #puts = 0;
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
    this.#renewIterator();
    if (this.#values.size <= this.#most) return;
    const oldest = this.#oldest.next();
    if (!oldest.done) this.#values.delete(oldest.value);
  }

  delete(key: K): void {
    this.#values.delete(key);
  }

  /**
   * An iterator that does not move keeps every table that the map has had since it did, and a map makes a new one whenever the
   * holes have filled it. So it is renewed now and then: seldom enough that walking over the holes costs nothing, often
   * enough that a few tables are kept and not one for each pair of requests.
   */
  #renewIterator(): void {
    this.#puts += 1;
    if (this.#puts <= this.#values.size + 16) return;
    this.#puts = 0;
    this.#oldest = this.#values.keys();
  }
}
