/** The table `audit_events`: who did what, in the order in which it was committed. */
import type { Selectable } from 'kysely';
import type { Writer } from './database.ts';
import type { AuditEventsTable } from './schema.ts';

export type AuditEventRow = Selectable<AuditEventsTable>;

/** Adds events in the order given. */
export async function insertAuditEvents(
  writer: Writer,
  rows: readonly Omit<AuditEventRow, 'id'>[],
): Promise<void> {
  for (const row of rows) await writer.insertInto('audit_events').values(row).execute();
}
