/** Concurrent work on many values with an upper limit. */

/**
 * Maps the values through `work`, keeping their order, with at most `atOnce` calls at a time. After a failure no
 * further call starts; running calls are awaited, then the first failure is thrown.
 */
export async function mapBounded<T, R>(
  atOnce: number,
  values: readonly T[],
  work: (value: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const failures: unknown[] = [];
  let next = 0;
  const lane = async () => {
    while (next < values.length && failures.length === 0) {
      const index = next++;
      try {
        results[index] = await work(values[index] as T);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, values.length) }, lane));
  if (failures.length > 0) throw failures[0];
  return results;
}
