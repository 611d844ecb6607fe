/** Work on many values with only so much of it at once. */

/**
 * Gives what `work` gives for each value, in their order, with at most `atOnce` under way. After a failure nothing more is
 * begun; what is under way is waited for, and the first failure is thrown.
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
