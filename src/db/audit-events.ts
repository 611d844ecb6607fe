/** The table `audit_events`: who did what, in the order in which it was committed. */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from './database.ts';
import type { AuditEventsTable } from './schema.ts';

export type AuditEventRow = Selectable<AuditEventsTable>;

/** Adds events in the order given. */
export async function insertAuditEvents(
  writer: Writer,
  rows: readonly Omit<AuditEventRow, 'id'>[],
): Promise<void> {
  for (const row of rows) await writer.insertInto('audit_events').values(row).execute();
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

/** A page of the events that fit, newest first, below the id `before` where given. */
export async function listAuditEvents(
  reader: Reader,
  { actor, action, resource, since, until }: AuditFilter,
  { before, limit }: { readonly before?: number | undefined; readonly limit: number },
): Promise<AuditEventRow[]> {
  let query = reader.selectFrom('audit_events').selectAll().orderBy('id', 'desc').limit(limit);
  if (before !== undefined) query = query.where('id', '<', before);
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
