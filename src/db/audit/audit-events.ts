/** The table `audit_events`: who did what, in commit order. */
import { CompiledQuery, type Selectable } from 'kysely';
import { type Reader, requireIntegrity, type Writer } from '../database.ts';
import type { AuditEventsTable } from '../schema/schema-audit.ts';
import { linkOf, taggedLink } from './audit-chain.ts';
import { chainEnd, writeAuditMark } from './audit-mark.ts';

export type AuditEventRow = Selectable<AuditEventsTable>;

/** An event before it is added to the log. */
export type NewAuditEvent = Omit<AuditEventRow, 'id' | 'link'>;

/** One statement for many rows is cheaper than one for each. There are few statements, so that they stay prepared. */
const insertions = [16, 4, 1].map((count) => ({ count, sql: insertionOf(count) }));

function insertionOf(count: number): string {
  const rows = Array.from({ length: count }, () => '(?, ?, ?, ?, ?, ?, ?, ?, ?)');
  return `insert into audit_events (id, at, actor, action, resource, detail, ip, request_id, link)
    values ${rows.join(', ')}`;
}

/** Adds events in order, each chained to its predecessor and tagged, and updates the sealed end of the log. */
export async function insertAuditEvents(writer: Writer, rows: readonly NewAuditEvent[]): Promise<void> {
  if (rows.length === 0) return;
  const integrity = requireIntegrity(writer);
  let { id, link } = await chainEnd(writer, integrity);
  let done = 0;
  for (const { count, sql } of insertions) {
    for (; rows.length - done >= count; done += count) {
      const values: (string | number | Buffer | null)[] = [];
      for (const { at, actor, action, resource, detail, ip, request_id } of rows.slice(done, done + count)) {
        id += 1;
        link = linkOf(link, { id, at, actor, action, resource, detail, ip, request_id });
        values.push(id, at, actor, action, resource, detail, ip, request_id, taggedLink(integrity, link));
      }
      await writer.executeQuery(CompiledQuery.raw(sql, values));
    }
  }
  await writeAuditMark(writer, integrity, { id, link });
}

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
