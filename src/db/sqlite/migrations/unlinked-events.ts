/** Chains the events that are older than the audit chain. */
import { CompiledQuery, type Kysely } from 'kysely';
import { lastLinked, linkOf } from '../../audit/audit-chain.ts';
import type { Schema } from '../../schema/schema.ts';

/** How many events are read or chained at a time. */
const eventsAtOnce = 400;

/**
 * Adds links to all events after the last one that has a link; only for the migration that introduced links. An event
 * that is added later without a link stays unlinked and is detected.
 */
export async function chainUnlinked(writer: Kysely<Schema>): Promise<void> {
  let end = await lastLinked(writer);
  for (;;) {
    const events = await writer
      .selectFrom('audit_events')
      .selectAll()
      .where('id', '>', end.id)
      .orderBy('id')
      .limit(eventsAtOnce)
      .execute();
    if (events.length === 0) return;
    const values: (number | Buffer)[] = [];
    for (const event of events) {
      end = { id: event.id, link: linkOf(end.link, event) };
      values.push(end.id, end.link);
    }
    await writer.executeQuery(CompiledQuery.raw(updateOf(events.length), values));
  }
}

function updateOf(count: number): string {
  const pairs = Array.from({ length: count }, () => '(?, ?)').join(', ');
  return `update audit_events set link = v.column2 from (values ${pairs}) v where audit_events.id = v.column1`;
}
