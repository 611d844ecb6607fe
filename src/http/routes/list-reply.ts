/** Splits lists into pages, the same way for all lists. */
import { escapedJson } from '../../base/printable-text.ts';
import { labelsInFilter } from '../../domain/labels/label-inputs.ts';
import { reachOf } from '../../domain/labels/reach.ts';
import { inPortions } from '../../domain/portions.ts';
import { jsonBody, type Reply } from '../request/reply.ts';
import type { Call } from '../request/route.ts';
import { inListTurn } from './list-turns.ts';

type Place = Pick<Call, 'baseUrl' | 'path'>;
type PagedCall = Place & Pick<Call, 'actor' | 'gone'> & { readonly query: { readonly limit: number } };
type Portions<Row> = Iterable<readonly Row[]> | AsyncIterable<readonly Row[]>;

/** A page of a list as JSON; `last` is the key of its last element if more follow (RFC 8288). */
function listReply(
  body: string | Buffer,
  { baseUrl, path }: Place,
  limit: number,
  last: string | number | undefined,
  filters: Readonly<Record<string, string | undefined>>,
): Reply {
  if (last === undefined) return jsonBody(200, body);
  const kept = Object.entries(filters).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  );
  const search = new URLSearchParams([...kept, ['limit', String(limit)], ['after', String(last)]]);
  return jsonBody(200, body, { Link: `<${baseUrl}${path}?${search}>; rel="next"` });
}

/**
 * A page from rows that were queried with one more than its limit, in portions: each is encoded before the next one is
 * read. `filters` are the other parameters that the next page needs.
 */
export function pageReply<Row, View>(
  portions: Portions<Row>,
  call: PagedCall,
  view: (row: Row) => View,
  cursor: (row: Row) => string | number,
  filters: Readonly<Record<string, string | undefined>> = {},
): Promise<Reply> {
  return inListTurn(call.actor.name, call.gone(), () => pageOf(portions, call, view, cursor, filters));
}

/** What selects a page of a list by id whose elements have labels. */
type LabelledPage = {
  readonly after: number | undefined;
  readonly limit: number;
  readonly labels: readonly string[] | undefined;
  readonly reach: readonly string[] | undefined;
};

type LabelledCall = PagedCall &
  Pick<Call, 'context' | 'identity'> & {
    readonly query: { readonly after?: number | undefined; readonly label?: string | undefined };
  };

/** A page of what has the labels of the filter and is within the reach of the caller. `filters` as for `pageReply`. */
export function labelledPageReply<View extends { readonly id: number }>(
  call: LabelledCall,
  read: (page: LabelledPage) => Promise<readonly View[]>,
  filters: Readonly<Record<string, string | undefined>> = {},
): Promise<Reply> {
  const { after, label, limit: wanted } = call.query;
  const labels = labelsInFilter(label);
  const reach = reachOf(call.identity);
  return pageReply(
    inPortions<View>(call.context.vault, wanted + 1, (limit, last) =>
      read({ after: last?.id ?? after, limit, labels, reach }),
    ),
    call,
    (view) => view,
    ({ id }) => id,
    { label, ...filters },
  );
}

async function pageOf<Row, View>(
  portions: Portions<Row>,
  call: PagedCall,
  view: (row: Row) => View,
  cursor: (row: Row) => string | number,
  filters: Readonly<Record<string, string | undefined>>,
): Promise<Reply> {
  const { limit } = call.query;
  const encoded: string[] = [];
  let left = limit;
  let last: Row | undefined;
  let isMore = false;
  for await (const rows of portions) {
    const page = rows.slice(0, left);
    left -= page.length;
    last = page.at(-1) ?? last;
    isMore = page.length < rows.length;
    if (page.length > 0) encoded.push(escapedJson(JSON.stringify(page.map((row) => view(row)))));
  }
  const next = isMore && last !== undefined ? cursor(last) : undefined;
  return listReply(joined(encoded), call, limit, next, filters);
}

/** JSON arrays as one. */
function joined([first = '[]', ...others]: readonly string[]): string | Buffer {
  if (others.length === 0) return first;
  const parts = [first, ...others].flatMap((text) => [comma, Buffer.from(text).subarray(1, -1)]);
  return Buffer.concat([Buffer.from('['), ...parts.slice(1), Buffer.from(']')]);
}

const comma = Buffer.from(',');

/** A page of a short list that is in memory: the elements after the name `after`, and one more. */
export function following<T extends { readonly name: string }>(
  all: readonly T[],
  { after, limit }: { readonly after?: string | undefined; readonly limit: number },
): readonly [readonly T[]] {
  return [all.filter(({ name }) => after === undefined || name > after).slice(0, limit + 1)];
}
