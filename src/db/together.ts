/**
 * Queries of one transaction that do not need each other's answers: sent together, they take the writing thread one
 * turn.
 */

/**
 * The results of all, once the last has ended; rejects like the first that did. Unlike with Promise.all, no query of
 * the others comes after the end of the transaction.
 */
export async function together<const Works extends readonly Promise<unknown>[]>(
  works: Works,
): Promise<{ -readonly [Index in keyof Works]: Awaited<Works[Index]> }> {
  await Promise.allSettled(works);
  return (await Promise.all(works)) as never;
}
