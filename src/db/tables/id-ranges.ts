/** Ranges of ids, for queries that look through a table in parts. */
import type { Reader } from '../database.ts';

/** Ids greater than `after`, up to `last`. */
export type IdRange = { readonly after: number; readonly last: number };

/** The range of the next `count` ids after `after`, or undefined if there are none. */
export async function nextRange(
  reader: Reader,
  table: 'certificates' | 'api_keys' | 'deployments' | 'endpoints',
  after: number,
  count: number,
): Promise<IdRange | undefined> {
  const { last } = await reader
    .selectFrom(({ selectFrom }) =>
      selectFrom(table).select('id').where('id', '>', after).orderBy('id').limit(count).as('page'),
    )
    .select(({ fn }) => fn.max<number | null>('id').as('last'))
    .executeTakeFirstOrThrow();
  return last === null ? undefined : { after, last };
}

/** The range of the next `count` deployments of the API key after the id `after`, or undefined if there are none. */
export async function nextRangeOfKey(
  reader: Reader,
  apiKeyId: number,
  after: number,
  count: number,
): Promise<IdRange | undefined> {
  const { last } = await reader
    .selectFrom(({ selectFrom }) =>
      selectFrom('deployments')
        .select('id')
        .where('api_key_id', '=', apiKeyId)
        .where('id', '>', after)
        .orderBy('id')
        .limit(count)
        .as('page'),
    )
    .select(({ fn }) => fn.max<number | null>('id').as('last'))
    .executeTakeFirstOrThrow();
  return last === null ? undefined : { after, last };
}
