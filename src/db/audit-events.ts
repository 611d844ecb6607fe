/** The table `audit_events`: who did what, in the order in which it was committed. */
import { CompiledQuery, type Selectable } from 'kysely';
import { chainEnd, linkOf } from './audit-chain.ts';
import type { Reader, Writer } from './database.ts';
import type { AuditEventsTable } from './schema-audit.ts';

export type AuditEventRow = Selectable<AuditEventsTable>;

/** An event before it has its place in the log. */
export type NewAuditEvent = Omit<AuditEventRow, 'id' | 'link'>;

const insertion = `insert into audit_events (id, at, actor, action, resource, detail, ip, request_id, link)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Adds events in the order given, each chained to the one before it. */
export async function insertAuditEvents(writer: Writer, rows: readonly NewAuditEvent[]): Promise<void> {
  if (rows.length === 0) return;
  let { id, link } = await chainEnd(writer);
  for (const row of rows) {
    id += 1;
    link = linkOf(link, { id, ...row });
    const { at, actor, action, resource, detail, ip, request_id } = row;
    const values = [id, at, actor, action, resource, detail, ip, request_id, link];
    await writer.executeQuery(CompiledQuery.raw(insertion, values));
  }
}

/** The next events after the one with the id `after`, in the order of the chain. */
export async function listChainedEvents(
  reader: Reader,
  after: number,
  limit: number,
): Promise<AuditEventRow[]> {
  return reader
    .selectFrom('audit_events')
    .selectAll()
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** The newest event, or undefined where there is none. */
export async function lastAuditEvent(reader: Reader): Promise<AuditEventRow | undefined> {
  return reader.selectFrom('audit_events').selectAll().orderBy('id', 'desc').limit(1).executeTakeFirst();
}

/** How many there are; reads an index from end to end. */
export async function countAuditEvents(reader: Reader): Promise<number> {
  const { n } = await reader
    .selectFrom('audit_events')
    .select(({ fn }) => fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow();
  return n;
}

/** The last id that was ever given to an event, also where that event is gone. */
export async function lastGivenId(reader: Reader): Promise<number> {
  const { rows } = await reader.executeQuery<{ seq: number }>(
    CompiledQuery.raw("select seq from sqlite_sequence where name = 'audit_events'"),
  );
  return rows[0]?.seq ?? 0;
}

/** Which events; what is undefined does not matter. */
export type AuditFilter = {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly resource?: string | undefined;
  /** UTC milliseconds, both inclusive. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
};

/** How far the clock may have been wrong: events near a bound of time are looked at one by one. */
const clockSlack = 86_400_000;

export type AuditOrder = 'newest first' | 'oldest first';

/** A page of events: those with ids below `before` and above `after`, where given. */
export type AuditPage = {
  readonly before?: number | undefined;
  readonly after?: number | undefined;
  readonly limit: number;
};

/** A page of the events that fit. */
export async function listAuditEvents(
  reader: Reader,
  { actor, action, resource, since, until }: AuditFilter,
  { before, after, limit }: AuditPage,
  order: AuditOrder = 'newest first',
): Promise<AuditEventRow[]> {
  const direction = order === 'newest first' ? 'desc' : 'asc';
  let query = reader.selectFrom('audit_events').selectAll().orderBy('id', direction).limit(limit);
  if (before !== undefined) query = query.where('id', '<', before);
  if (after !== undefined) query = query.where('id', '>', after);
  if (actor !== undefined) query = query.where('actor', '=', actor);
  if (action !== undefined) query = query.where('action', '=', action);
  if (resource !== undefined) query = query.where('resource', '=', resource);
  if (since !== undefined) {
    query = query.where('at', '>=', since).where('id', '>=', await firstIdFrom(reader, since - clockSlack));
  }
  if (until !== undefined) {
    query = query.where('at', '<=', until).where('id', '<=', await firstIdFrom(reader, until + clockSlack));
  }
  return query.execute();
}

/**
 * The id of the first event at `at` or later, or one above all. Ids are given in the order of time, so that it is found
 * by halving, and no index of times has to be kept for every download.
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

/** The event of this id, or the next older one. */
async function neighbour(reader: Reader, id: number): Promise<{ id: number; at: number } | undefined> {
  return reader
    .selectFrom('audit_events')
    .select(['id', 'at'])
    .where('id', '<=', id)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
}
