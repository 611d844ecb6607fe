/**
 * The chain of the audit log: each event carries the SHA-256 over the link of the event before it and over its own fields,
 * so that a row that was changed, removed or put in between no longer fits its neighbours.
 */
import { CompiledQuery, type Kysely, type Selectable } from 'kysely';
import { sha256 } from '../base/sha256.ts';
import type { Schema } from './schema.ts';
import type { AuditEventsTable } from './schema-audit.ts';

/** What an event says; the link that binds it to the one before is made from it. */
export type ChainedEvent = Omit<Selectable<AuditEventsTable>, 'link'>;

/** The end of a chain, or of a part of it: an event's id and its link. */
export type ChainEnd = { readonly id: number; readonly link: Buffer };

/** Before the first event. */
export const chainBeginning: ChainEnd = { id: 0, link: Buffer.alloc(32) };

/** What stands first in every link, so that another way to make them can follow. */
const version = netstring('vault-audit-1');

/** How many events are read or chained at once. */
const eventsAtOnce = 400;

/**
 * The link of an event after the one whose link is `previous`: SHA-256 over netstrings (`length in bytes:bytes,`) of the
 * version, `previous` in hexadecimal, id, time in milliseconds, actor, action, resource, detail, address and request id. A
 * `-` stands for what is null.
 */
export function linkOf(previous: Buffer, event: ChainedEvent): Buffer {
  const text =
    version +
    ascii(previous.toString('hex')) +
    ascii(String(event.id)) +
    ascii(String(event.at)) +
    netstring(event.actor) +
    netstring(event.action) +
    netstring(event.resource) +
    netstring(event.detail) +
    optional(event.ip) +
    optional(event.request_id);
  return sha256(text);
}

/**
 * The end of the chain, to be asked in the transaction that goes on with it. Its id is the last one ever given, so that a gap
 * stays where the newest events were taken away. Events that have no link, which a vault of an earlier version writes that
 * still runs, are chained first.
 */
export async function chainEnd(writer: Kysely<Schema>): Promise<ChainEnd> {
  const { rows } = await writer.executeQuery<{ seq: number; link: Buffer | null }>(lastEvent);
  const [last] = rows;
  if (last === undefined) return chainBeginning;
  if (last.link?.length === 0) return chainUnlinked(writer);
  return { id: last.seq, link: last.link ?? chainBeginning.link };
}

const lastEvent = CompiledQuery.raw(
  `select s.seq, e.link from sqlite_sequence s left join audit_events e on e.id = (select max(id) from audit_events)
   where s.name = 'audit_events'`,
);

/** Gives links to all events after the last that has one, and returns the end of the chain then. */
export async function chainUnlinked(writer: Kysely<Schema>): Promise<ChainEnd> {
  let end = await lastLinked(writer);
  for (;;) {
    const events = await writer
      .selectFrom('audit_events')
      .selectAll()
      .where('id', '>', end.id)
      .orderBy('id')
      .limit(eventsAtOnce)
      .execute();
    if (events.length === 0) return end;
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

async function lastLinked(reader: Kysely<Schema>): Promise<ChainEnd> {
  const last = await reader
    .selectFrom('audit_events')
    .select(['id', 'link'])
    .where('link', '<>', Buffer.alloc(0))
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return last ?? chainBeginning;
}

function optional(text: string | null): string {
  return text === null ? '-' : netstring(text);
}

/** A netstring whose characters are bytes. */
function ascii(text: string): string {
  return `${text.length}:${text},`;
}

function netstring(text: string): string {
  return `${Buffer.byteLength(text)}:${text},`;
}
