/** Delivery progress of the audit log per collector: the id of the last event, kept in the database across restarts. */
import { listChainedEvents } from '../../db/audit/audit-events.ts';
import { putSetting, readSetting } from '../../db/tables/settings.ts';
import type { DatabaseContext } from '../contexts.ts';
import type { RecordedEvent } from './audit-log.ts';

/** A kind of collector; each has a cursor. */
export type Collector = 'file' | 'syslog';

/** The id of the last event that this collector has; undefined if it has none yet. */
export async function auditCursor(
  { db }: DatabaseContext,
  collector: Collector,
): Promise<number | undefined> {
  const known = await readSetting(db.reader, `audit-${collector}-cursor`);
  return known === undefined ? undefined : Number(known);
}

/** Records that the collector has all events up to this one. */
export async function moveAuditCursor(
  { db }: DatabaseContext,
  collector: Collector,
  id: number,
): Promise<void> {
  await db.write((writer) => putSetting(writer, `audit-${collector}-cursor`, id));
}

/** The next events after the one with this id, oldest first, at most `limit`. */
export function eventsAfter({ db }: DatabaseContext, id: number, limit: number): Promise<RecordedEvent[]> {
  return listChainedEvents(db.reader, id, limit);
}
