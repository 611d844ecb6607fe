/**
 * Lets measurements of several executables alternate, so that changes in the speed of the machine affect all of them
 * equally.
 */

/** Hands over to the next measurement; resolves when this one continues. */
export type Turn = () => Promise<void>;

/**
 * Runs all works, of which only one proceeds at a time. Each hands over to the next one with `turn` and when it ends.
 * If one fails, the others fail at their next turn, and this throws the error of the first.
 */
export async function byTurns<T>(works: readonly ((turn: Turn) => Promise<T>)[]): Promise<T[]> {
  let last = Promise.resolve();
  const take = async () => {
    const before = last;
    const { promise, resolve } = Promise.withResolvers<void>();
    last = promise;
    await before;
    return resolve;
  };
  let isFailed = false;
  let failure: unknown;
  const results = await Promise.allSettled(
    works.map(async (work) => {
      let release = await take();
      const turn = async () => {
        release();
        release = await take();
        if (isFailed) throw new Error('another measurement failed');
      };
      try {
        return await work(turn);
      } catch (error) {
        if (!isFailed) failure = error;
        isFailed = true;
        throw error;
      } finally {
        release();
      }
    }),
  );
  return results.map((result) => {
    if (result.status === 'rejected') throw failure;
    return result.value;
  });
}
