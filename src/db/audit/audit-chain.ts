/**
 * The chain of the audit log. Each event's link is a hash over the event before it and over its own fields, which anyone can
 * compute, and a tag over that hash, for which the vault's integrity key is needed: write access to the database alone can
 * neither change an event unseen nor forge one.
 */
import { CompiledQuery, type Kysely, type Selectable } from 'kysely';
import type { Integrity } from '../../base/integrity.ts';
import { asciiNetstring, netstring, optionalNetstring } from '../../base/netstring.ts';
import { sha256 } from '../../base/sha256.ts';
import type { Schema } from '../schema/schema.ts';
import type { AuditEventsTable } from '../schema/schema-audit.ts';

/** What an event says; the link that binds it to the one before is made from it. */
export type ChainedEvent = Omit<Selectable<AuditEventsTable>, 'link'>;

/** The end of a chain, or of a part of it: an event's id and its hash, the first 32 bytes of its link. */
export type ChainEnd = { readonly id: number; readonly link: Buffer };

/** Before the first event. */
export const chainBeginning: ChainEnd = { id: 0, link: Buffer.alloc(32) };

/** What stands first in every hash, so that another way to make them can follow. */
const version = netstring('vault-audit-1');

/** What stands first in every tag. */
const tagVersion = netstring('vault-audit-2');

/** Bytes of a hash, and of a link of `vault-audit-1`, which has no tag. */
const hashSize = 32;

/** How many events are read or chained at once. */
const eventsAtOnce = 400;

/**
 * The hash of an event after the one whose hash is `previous`: SHA-256 over netstrings (`length in bytes:bytes,`) of the
 * version, `previous` in hexadecimal, id, time in milliseconds, actor, action, resource, detail, address and request id. A
 * `-` stands for what is null.
 */
export function linkOf(previous: Buffer, event: ChainedEvent): Buffer {
  const text =
    version +
    asciiNetstring(previous.toString('hex')) +
    asciiNetstring(String(event.id)) +
    asciiNetstring(String(event.at)) +
    netstring(event.actor) +
    netstring(event.action) +
    netstring(event.resource) +
    netstring(event.detail) +
    optionalNetstring(event.ip) +
    optionalNetstring(event.request_id);
  return sha256(text);
}

/** The hash in a link; what exports, feeds and checkpoints show. */
export function hashIn(link: Buffer): Buffer {
  return link.length > hashSize ? link.subarray(0, hashSize) : link;
}

/** The link that is stored for a hash: the hash, and the tag over it. */
export function taggedLink(integrity: Integrity, hash: Buffer): Buffer {
  return Buffer.concat([hash, integrity.tag('audit event', tagText(hash))]);
}

/** What a link shows: `tagged` by this vault, without a tag as before `vault-audit-2`, or with a tag that is not the vault's. */
export function tagState(integrity: Integrity, link: Buffer): 'tagged' | 'untagged' | 'forged' {
  if (link.length <= hashSize) return 'untagged';
  const tag = link.subarray(hashSize);
  return integrity.fits('audit event', tagText(hashIn(link)), tag) ? 'tagged' : 'forged';
}

function tagText(hash: Buffer): string {
  return tagVersion + asciiNetstring(hash.toString('hex'));
}

/**
 * Gives links to all events after the last that has one: for the migration that introduced links, and for nothing else. An
 * event without a link that comes later stays as it is, and shows.
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

/** The last event that has a link, or the beginning. */
export async function lastLinked(reader: Kysely<Schema>): Promise<ChainEnd> {
  const last = await reader
    .selectFrom('audit_events')
    .select(['id', 'link'])
    .where('link', '<>', Buffer.alloc(0))
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return last === undefined ? chainBeginning : { id: last.id, link: hashIn(last.link) };
}
