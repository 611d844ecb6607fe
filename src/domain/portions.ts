/** Reads long lists in portions, so that other requests are answered in between. */
import { type IdRange, nextRange } from '../db/tables/id-ranges.ts';
import type { TimedContext, WorldContext } from './contexts.ts';

/** Rows per portion, about: a few milliseconds to read and to encode. */
export const rowsPerPortion = 250;

/** The limit of a list that is read whole. */
export const unlimited = Number.MAX_SAFE_INTEGER;

/** The size of the next of several equal portions, so that none has only the one row that shows that there are more. */
function portionOf(left: number, size: number): number {
  return Math.ceil(left / Math.max(1, Math.round(left / size)));
}

/**
 * A list of at most `limit` rows. `read` reads the next `count` rows after `last`, as for the pages of a list; what is
 * changed between two portions shows as it would between two pages. Long rows need a smaller `size`.
 */
export async function* inPortions<Row>(
  { world }: WorldContext,
  limit: number,
  read: (count: number, last: Row | undefined) => Promise<readonly Row[]>,
  size = rowsPerPortion,
): AsyncGenerator<readonly Row[]> {
  let last: Row | undefined;
  for (let left = limit; left > 0; ) {
    const count = portionOf(left, size);
    const rows = await read(count, last);
    yield rows;
    if (rows.length < count) return;
    left -= count;
    last = rows.at(-1);
    if (left > 0) await world.turn();
  }
}

/**
 * A list in an order that no index has. `match` looks through everything for the first `count` matches after `last`,
 * and `read` reads the rows of some of them; matches that were deleted meanwhile have none, and are replaced by the
 * next ones.
 */
export async function* inMatchedPortions<Match, Row>(
  { world }: WorldContext,
  limit: number,
  match: (count: number, last: Match | undefined) => Promise<readonly Match[]>,
  read: (matches: readonly Match[]) => Promise<readonly Row[]>,
  size = rowsPerPortion,
): AsyncGenerator<readonly Row[]> {
  let last: Match | undefined;
  for (let left = limit; left > 0; ) {
    const count = left;
    const matches = await match(count, last);
    const some = portionOf(matches.length, size);
    for (let from = 0; from < matches.length; from += some) {
      if (from > 0) await world.turn();
      const rows = await read(matches.slice(from, from + some));
      yield rows;
      left -= rows.length;
    }
    if (matches.length < count) return;
    last = matches.at(-1);
  }
}

/** All rows of a table as ranges of `count` ids, with a turn of the event loop in between. */
export async function* rangesOf(
  { db, world }: TimedContext,
  table: Parameters<typeof nextRange>[1],
  count: number,
): AsyncGenerator<IdRange> {
  let range: IdRange | undefined;
  for (;;) {
    range = await nextRange(db.reader, table, range?.last ?? 0, count);
    if (range === undefined) return;
    yield range;
    await world.turn();
  }
}
