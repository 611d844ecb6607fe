/** The table `audit_events`: who did what, in commit order. */
import type { Selectable } from 'kysely';
import type { Reader } from '../database.ts';
import type { AuditEventsTable } from '../schema/schema-audit.ts';

export type AuditEventRow = Selectable<AuditEventsTable>;

/** The next events after the id `after`, in chain order. */
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

/** The newest events with this action after the id `after`, newest first. */
export async function listEventsOfAction(
  reader: Reader,
  action: string,
  after: number,
  limit: number,
): Promise<AuditEventRow[]> {
  return reader
    .selectFrom('audit_events')
    .selectAll()
    .where('action', '=', action)
    .where('id', '>', after)
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

/** The first event after the id `id`. */
export async function firstAfter(reader: Reader, id: number): Promise<{ id: number } | undefined> {
  return reader
    .selectFrom('audit_events')
    .select('id')
    .where('id', '>', id)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst();
}

/** The newest event, or undefined if there is none. */
export async function lastAuditEvent(reader: Reader): Promise<AuditEventRow | undefined> {
  return reader.selectFrom('audit_events').selectAll().orderBy('id', 'desc').limit(1).executeTakeFirst();
}

/** The number of events; scans an index. */
export async function countAuditEvents(reader: Reader): Promise<number> {
  const { n } = await reader
    .selectFrom('audit_events')
    .select(({ fn }) => fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow();
  return n;
}

/** The id of the newest event with one of these actions; 0 without any. */
export async function lastEventOf(reader: Reader, actions: readonly string[]): Promise<number> {
  let last = 0;
  // One query per action: only then the index of actions has the maximum at its end.
  for (const action of actions) {
    const { id } = await reader
      .selectFrom('audit_events')
      .select(({ fn }) => fn.max<number | null>('id').as('id'))
      .where('action', '=', action)
      .executeTakeFirstOrThrow();
    last = Math.max(last, id ?? 0);
  }
  return last;
}
