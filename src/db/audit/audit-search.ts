/**
 * Searches the audit log: pages of events by actor, action, resource and time, without indexes that every download
 * would have to update. A search that finds little looks through the log in parts; other work has its turn in between.
 */
import { sql } from 'kysely';
import type { World } from '../../base/world.ts';
import type { Reader } from '../database.ts';
import { largeNumber, withoutIndex } from '../engine-sql.ts';
import { type AuditEventRow, firstAfter } from './audit-events.ts';

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

/** What one query looks through: few milliseconds of work. */
type Part = Span & {
  /** If given, only these blocks of ids. */
  readonly blocks?: readonly number[];
};

/** A page of the matching events. Between two queries, `world` gives other work its turn. */
export async function listAuditEvents(
  reader: Reader,
  world: Pick<World, 'turn'>,
  filter: AuditFilter,
  { before, after = 0, limit }: AuditPage,
  order: AuditOrder = 'newest first',
): Promise<AuditEventRow[]> {
  const { actor, resource, since, until } = filter;
  const last = (await neighbour(reader, Number.MAX_SAFE_INTEGER))?.id ?? 0;
  const starts = since === undefined ? 0 : await firstIdFrom(reader, since - clockSlack);
  const ends = until === undefined ? last : await firstIdFrom(reader, until + clockSlack);
  const first = (await firstAfter(reader, after))?.id ?? last + 1;
  const all = {
    from: Math.max(starts, first),
    to: Math.min((before ?? Number.MAX_SAFE_INTEGER) - 1, ends, last),
  };
  const isInBlocks = actor !== undefined || resource !== undefined;
  const parts = isInBlocks
    ? blocksWith(reader, world, filter, all, order)
    : partsOf(reader, filter, all, order);
  const events: AuditEventRow[] = [];
  for await (const part of parts) {
    const wanted = { limit: limit - events.length, order };
    events.push(...(await inPart(reader, filter, part, wanted)));
    if (events.length === limit) break;
    await world.turn();
  }
  return events;
}

type Wanted = { readonly limit: number; readonly order: AuditOrder };

/** The indexes by actor and resource have one entry per 1,024 ids (migration 0007). */
const blockBits = 10;
const blockSize = 2 ** blockBits;
const blockOf = (id: number) => Math.floor(id / blockSize);

/** So many blocks are looked up in the index at once, and of so many all events may be read. */
const blocksLookedUp = 512;
const blocksRead = 4;

/** So many events at once may be outside of the times. */
const blocksBetweenTimes = 16;

/** Without times, all of the range: the index of ids or actions leads from match to match. */
async function* partsOf(
  reader: Reader,
  { since, until }: AuditFilter,
  all: Span,
  order: AuditOrder,
): AsyncGenerator<Part> {
  if (since === undefined && until === undefined) yield all;
  else yield* spansOf(reader, all, order, blocksBetweenTimes, blocksBetweenTimes);
}

/** The blocks with events of the actor or on the resource, a few at a time. */
async function* blocksWith(
  reader: Reader,
  world: Pick<World, 'turn'>,
  filter: AuditFilter,
  all: Span,
  order: AuditOrder,
): AsyncGenerator<Part> {
  // Frequent actors are found in the first blocks, and rare ones with few queries.
  for await (const span of spansOf(reader, all, order, blocksRead, blocksLookedUp)) {
    const blocks = await matchingBlocks(reader, filter, span);
    if (order === 'newest first') blocks.reverse();
    for (let at = 0; at < blocks.length; at += blocksRead) {
      yield { ...span, blocks: blocks.slice(at, at + blocksRead) };
    }
    await world.turn();
  }
}

/**
 * Splits the range into parts of whole blocks, beginning with the start of the page. They grow from `blocks` to `most`
 * blocks. Each begins at an event, so that gaps between ids cost nothing.
 */
async function* spansOf(
  reader: Reader,
  { from, to }: Span,
  order: AuditOrder,
  blocks: number,
  most: number,
): AsyncGenerator<Span> {
  const isDown = order === 'newest first';
  let size = blocks * blockSize;
  let next = isDown ? to : from;
  for (;;) {
    const start = await (isDown ? neighbour(reader, next) : firstAfter(reader, next - 1));
    if (start === undefined || start.id < from || start.id > to) return;
    if (isDown) {
      const begin = Math.max(from, Math.floor((start.id + 1) / blockSize) * blockSize - size);
      yield { from: begin, to: start.id };
      next = begin - 1;
    } else {
      const end = Math.min(to, Math.floor(start.id / blockSize) * blockSize + size - 1);
      yield { from: start.id, to: end };
      next = end + 1;
    }
    size = Math.min(size * 8, most * blockSize);
  }
}

/** In ascending order. */
async function matchingBlocks(
  reader: Reader,
  { actor, resource }: AuditFilter,
  { from, to }: Span,
): Promise<number[]> {
  const isIn = (column: 'actor' | 'resource', value: string) =>
    sql`exists (select 1 from audit_events where id >> 10 = block and ${sql.ref(column)} = ${value})`;
  const conditions = [
    ...(actor === undefined ? [] : [isIn('actor', actor)]),
    ...(resource === undefined ? [] : [isIn('resource', resource)]),
  ];
  const { rows } = await sql<{ block: number }>`with recursive blocks (block) as (
    select ${largeNumber(blockOf(from))} union all select block + 1 from blocks where block < ${largeNumber(blockOf(to))}
  ) select block from blocks where ${sql.join(conditions, sql` and `)} order by block`.execute(reader);
  return rows.map(({ block }) => block);
}

function inPart(reader: Reader, filter: AuditFilter, part: Part, wanted: Wanted): Promise<AuditEventRow[]> {
  const { blocks } = part;
  return blocks === undefined
    ? inOrder(reader, filter, part, wanted)
    : inBlocks(reader, filter, { ...part, blocks }, wanted);
}

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

/** No other index than that of the blocks may be used: it would read all events. */
function inBlocks(
  reader: Reader,
  { actor, action, resource, since, until }: AuditFilter,
  { from, to, blocks }: Required<Part>,
  { limit, order }: Wanted,
): Promise<AuditEventRow[]> {
  let query = reader
    .selectFrom('audit_events')
    .selectAll()
    .where(sql<boolean>`id >> 10 in (${sql.join(blocks.map(largeNumber))})`)
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
