/** How events come into the table `audit_events`: in order, each chained to the one before and tagged. */
import { CompiledQuery, type Kysely, type Selectable } from 'kysely';
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import type { Schema } from '../schema/schema.ts';
import type { AuditEventsTable } from '../schema/schema-audit.ts';
import { linkOf, taggedLink } from './audit-chain.ts';
import { chainEnd, writeAuditMark } from './audit-mark.ts';

/** An event before it is added to the log. */
export type NewAuditEvent = Omit<Selectable<AuditEventsTable>, 'id' | 'link'>;

/** One statement for many rows is cheaper than one for each. There are few statements, so that they stay prepared. */
const insertions = [16, 4, 1].map((count) => ({ count, sql: insertionOf(count) }));

function insertionOf(count: number): string {
  const rows = Array.from({ length: count }, () => '(?, ?, ?, ?, ?, ?, ?, ?, ?)');
  return `insert into audit_events (id, at, actor, action, resource, detail, ip, request_id, link)
    values ${rows.join(', ')}`;
}

/** Adds events in order, each chained to its predecessor and tagged, and updates the sealed end of the log. */
export async function insertAuditEvents(
  writer: Kysely<Schema> & { readonly integrity: Integrity | undefined },
  rows: readonly NewAuditEvent[],
): Promise<void> {
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
