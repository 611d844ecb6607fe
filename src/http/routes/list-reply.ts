/** Splits lists into pages, the same way for all lists. */
import { json, type Reply } from '../request/reply.ts';
import type { Call } from '../request/route.ts';

type Place = Pick<Call, 'baseUrl' | 'path'>;

/**
 * A page of a list; `last` is the key of its last element if more follow (RFC 8288). `filters` are the other parameters
 * that the next page needs.
 */
export function listReply(
  page: readonly unknown[],
  { baseUrl, path }: Place,
  limit: number,
  last: string | number | undefined,
  filters: Readonly<Record<string, string | undefined>> = {},
): Reply {
  if (last === undefined) return json(200, page);
  const kept = Object.entries(filters).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  );
  const search = new URLSearchParams([...kept, ['limit', String(limit)], ['after', String(last)]]);
  return json(200, page, { Link: `<${baseUrl}${path}?${search}>; rel="next"` });
}

/** A page from rows that were queried with one more than its limit. */
export function pageReply<Row, View>(
  rows: readonly Row[],
  call: Place & { readonly query: { readonly limit: number } },
  view: (row: Row) => View,
  cursor: (row: Row) => string | number,
  filters?: Readonly<Record<string, string | undefined>>,
): Reply {
  const { limit } = call.query;
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const next = rows.length > limit && last !== undefined ? cursor(last) : undefined;
  return listReply(page.map(view), call, limit, next, filters);
}

/** A page of a short list that is in memory: the elements after the name `after`, and one more. */
export function following<T extends { readonly name: string }>(
  all: readonly T[],
  { after, limit }: { readonly after?: string | undefined; readonly limit: number },
): readonly T[] {
  return all.filter(({ name }) => after === undefined || name > after).slice(0, limit + 1);
}
