/** How events come into the table `audit_events`: in order, each chained to the one before and tagged. */
import { type Expression, type Selectable, sql } from 'kysely';
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import { compiledQuery, type QueryRunner, type Value } from '../compiled-query.ts';
import type { AuditEventsTable } from '../schema/schema-audit.ts';
import { type ChainEnd, linkOf, taggedLink } from './audit-chain.ts';
import { chainEnd, type LogEnd, writeAuditMark } from './audit-mark.ts';

/** An event before it is added to the log. */
export type NewAuditEvent = Omit<Selectable<AuditEventsTable>, 'id' | 'link'> & {
  /** The tag of the row that it records (row-records.ts). */
  readonly row?: Buffer | undefined;
};

/** The transaction that adds events, with what tags them. */
export type EventWriter = QueryRunner & { readonly integrity: Integrity | undefined };

const columns = ['id', 'at', 'actor', 'action', 'resource', 'detail', 'ip', 'request_id', 'link'] as const;

/** One statement for many rows is cheaper than one for each. There are few statements, so that they stay prepared. */
const insertions = [16, 4, 1].map((count) => ({ count, insert: insertionOf(count) }));

/** The values are those of all columns of the first row, then of the next. */
function insertionOf(count: number) {
  return compiledQuery((db, ...values: Expression<Value>[]) => {
    const rows = Array.from(
      { length: count },
      (_, row) => sql`(${sql.join(values.slice(row * columns.length, (row + 1) * columns.length))})`,
    );
    return db
      .insertInto('audit_events')
      .columns(columns)
      .expression(sql`values ${sql.join(rows)}`);
  });
}

/**
 * Adds events in order, each chained to its predecessor and tagged, and updates the sealed end of the log. Returns the
 * new end; `known` is an event that the log must still have (`chainEnd`).
 */
export async function insertAuditEvents(
  writer: EventWriter,
  rows: readonly NewAuditEvent[],
  known?: ChainEnd | undefined,
): Promise<LogEnd> {
  const { lost, ...before } = await chainEnd(writer, requireIntegrity(writer), known);
  const { sent, end } = sendAuditEvents(writer, rows, before);
  await Promise.all(sent);
  return { ...end, lost };
}

/**
 * The same where `before`, the end of the log, is known: gives all statements to the connection, which executes them in
 * this order, before the first has ended.
 */
export function sendAuditEvents(
  writer: EventWriter,
  rows: readonly NewAuditEvent[],
  before: ChainEnd,
): { readonly sent: Promise<unknown>[]; readonly end: ChainEnd } {
  const integrity = requireIntegrity(writer);
  const sent: Promise<unknown>[] = [];
  let { id, link } = before;
  let done = 0;
  for (const { count, insert } of insertions) {
    for (; rows.length - done >= count; done += count) {
      const values: Value[] = [];
      for (const { at, actor, action, resource, detail, ip, request_id, row } of rows.slice(
        done,
        done + count,
      )) {
        id += 1;
        link = linkOf(link, { id, at, actor, action, resource, detail, ip, request_id });
        values.push(
          id,
          at,
          actor,
          action,
          resource,
          detail,
          ip,
          request_id,
          taggedLink(integrity, link, row),
        );
      }
      sent.push(insert(writer, ...values));
    }
  }
  const end = { id, link };
  sent.push(writeAuditMark(writer, integrity, end));
  return { sent, end };
}

/** The action of an event that records a row again, because no other event of the transaction names it. */
const recordAction = 'integrity.row';

/**
 * The events of a transaction with the tags of the rows that it wrote: each goes to the last event that names its row,
 * or to an event of its own before them. Throws if there is no event at all, which is a bug.
 */
export function withRows(
  events: readonly NewAuditEvent[],
  rows: ReadonlyMap<string, Buffer>,
): readonly NewAuditEvent[] {
  if (rows.size === 0) return events;
  const all = [...events];
  const others: NewAuditEvent[] = [];
  const last = all.at(-1);
  if (last === undefined) throw new Error('a row that grants rights was written without an event');
  const places = new Map(all.map(({ resource }, index) => [resource, index]));
  for (const [resource, row] of rows) {
    const place = places.get(resource);
    const event = place === undefined ? undefined : all[place];
    if (place === undefined || event === undefined) {
      others.push({ ...last, action: recordAction, resource, detail: '{}', row });
    } else {
      all[place] = { ...event, row };
    }
  }
  return [...others, ...all];
}
