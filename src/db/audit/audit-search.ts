/**
 * Searches the audit log: pages of events by actor, action, resource and time, without indexes that every download
 * would have to update.
 */
import { sql } from 'kysely';
import type { Reader } from '../database.ts';
import { withoutIndex } from '../engine-sql.ts';
import type { AuditEventRow } from './audit-events.ts';

/** Which events to return; undefined members match all. */
export type AuditFilter = {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly resource?: string | undefined;
  /** UTC milliseconds, both inclusive. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
};

/** How far the clock may have been wrong: events near a time bound are checked one by one. */
const clockSlack = 86_400_000;

export type AuditOrder = 'newest first' | 'oldest first';

/** A page of events: ids below `before` and above `after`, where given. */
export type AuditPage = {
  readonly before?: number | undefined;
  readonly after?: number | undefined;
  readonly limit: number;
};

/** A range of event ids, both inclusive. */
type Span = { readonly from: number; readonly to: number };

/** A page of the matching events. */
export async function listAuditEvents(
  reader: Reader,
  filter: AuditFilter,
  { before, after = 0, limit }: AuditPage,
  order: AuditOrder = 'newest first',
): Promise<AuditEventRow[]> {
  const { since, until } = filter;
  const last = (await neighbour(reader, Number.MAX_SAFE_INTEGER))?.id ?? 0;
  const starts = since === undefined ? 0 : await firstIdFrom(reader, since - clockSlack);
  const ends = until === undefined ? last : await firstIdFrom(reader, until + clockSlack);
  const first = (await firstAfter(reader, after))?.id ?? last + 1;
  const all = {
    from: Math.max(starts, first),
    to: Math.min((before ?? Number.MAX_SAFE_INTEGER) - 1, ends, last),
  };
  const page = { limit, order };
  if (filter.actor === undefined && filter.resource === undefined) return inOrder(reader, filter, all, page);
  const events: AuditEventRow[] = [];
  for (const span of blocksOf(all, order)) {
    events.push(...(await inBlocks(reader, filter, span, { limit: limit - events.length, order })));
    if (events.length === limit) break;
  }
  return events;
}

type Wanted = { readonly limit: number; readonly order: AuditOrder };

/** Scans by id or, for an action, by the index of actions. */
function inOrder(
  reader: Reader,
  { action, since, until }: AuditFilter,
  { from, to }: Span,
  { limit, order }: Wanted,
): Promise<AuditEventRow[]> {
  let query = reader.selectFrom('audit_events').selectAll().where('id', '>=', from).where('id', '<=', to);
  if (action !== undefined) query = query.where('action', '=', action);
  if (since !== undefined) query = query.where('at', '>=', since);
  if (until !== undefined) query = query.where('at', '<=', until);
  return query
    .orderBy('id', order === 'newest first' ? 'desc' : 'asc')
    .limit(limit)
    .execute();
}

/** The indexes by actor and resource have one entry per 1,024 ids (migration 0007). */
const blockBits = 10;
const blockSize = 2 ** blockBits;
const blockOf = (id: number) => Math.floor(id / blockSize);

/**
 * Splits the range into parts of whole blocks, beginning with the start of the page. Frequent actors are found in the
 * first part; parts grow, so that rare ones are found with few queries.
 */
function* blocksOf({ from, to }: Span, order: AuditOrder): Generator<Span> {
  let size = 4 * blockSize;
  let rest = { from, to };
  while (rest.from <= rest.to) {
    if (order === 'newest first') {
      const begin = Math.max(rest.from, Math.floor((rest.to + 1) / blockSize) * blockSize - size);
      yield { from: begin, to: rest.to };
      rest = { from: rest.from, to: begin - 1 };
    } else {
      const end = Math.min(rest.to, Math.floor(rest.from / blockSize) * blockSize + size - 1);
      yield { from: rest.from, to: end };
      rest = { from: end + 1, to: rest.to };
    }
    size *= 8;
  }
}

/** No other index than that of the blocks may be used: it would read all events. */
function inBlocks(
  reader: Reader,
  { actor, action, resource, since, until }: AuditFilter,
  { from, to }: Span,
  { limit, order }: Wanted,
): Promise<AuditEventRow[]> {
  // The sum makes it a number in PostgreSQL; after a cast, SQLite would not use the index.
  const blocks = sql`(with recursive blocks (block) as (
    select ${blockOf(from)} + 0 union all select block + 1 from blocks where block < ${blockOf(to)}
  ) select block from blocks)`;
  let query = reader
    .selectFrom('audit_events')
    .selectAll()
    .where(sql<boolean>`id >> 10 in ${blocks}`)
    .where(sql<boolean>`${withoutIndex('id')} between ${from} and ${to}`);
  if (actor !== undefined) query = query.where('actor', '=', actor);
  if (resource !== undefined && actor === undefined) query = query.where('resource', '=', resource);
  if (resource !== undefined && actor !== undefined)
    query = query.where(sql<boolean>`${withoutIndex('resource')} = ${resource}`);
  if (action !== undefined) query = query.where(sql<boolean>`${withoutIndex('action')} = ${action}`);
  if (since !== undefined) query = query.where('at', '>=', since);
  if (until !== undefined) query = query.where('at', '<=', until);
  return query
    .orderBy('id', order === 'newest first' ? 'desc' : 'asc')
    .limit(limit)
    .execute();
}

/**
 * The id of the first event at `at` or later, or one above all ids. Ids increase with time, so a binary search finds it
 * without an index of times, which every download would have to update.
 */
async function firstIdFrom(reader: Reader, at: number): Promise<number> {
  let low = 0;
  let high = ((await neighbour(reader, Number.MAX_SAFE_INTEGER))?.id ?? 0) + 1;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const event = await neighbour(reader, middle);
    if (event === undefined || event.at < at) low = middle;
    else high = middle;
  }
  return high;
}

async function firstAfter(reader: Reader, id: number): Promise<{ id: number } | undefined> {
  return reader
    .selectFrom('audit_events')
    .select('id')
    .where('id', '>', id)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst();
}

/** The event with this id, or the next older one. */
async function neighbour(reader: Reader, id: number): Promise<{ id: number; at: number } | undefined> {
  return reader
    .selectFrom('audit_events')
    .select(['id', 'at'])
    .where('id', '<=', id)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
}
