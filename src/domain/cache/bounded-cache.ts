/** Caches of a bounded number of entries, which evict what was used longest ago. */
import { LRUCache } from 'lru-cache';

export type BoundedCache<K extends NonNullable<unknown>, V extends NonNullable<unknown>> = LRUCache<K, V>;

/**
 * A cache of at most `max` entries. Its memory grows with them: the library's option `max` would allocate all of it at
 * once, two milliseconds for each ten thousand, at each start.
 */
export function boundedCache<K extends NonNullable<unknown>, V extends NonNullable<unknown>>(
  max: number,
): BoundedCache<K, V> {
  return new LRUCache({ maxSize: max, sizeCalculation: () => 1 });
}
