/**
 * The chain of the audit log. The link of each event is a hash over the previous link and its own fields, which anyone
 * can compute, and a tag over that hash, which requires the vault's integrity key: with write access to the database
 * alone, events can be neither changed undetected nor forged.
 */
import { CompiledQuery, type Kysely, type Selectable } from 'kysely';
import type { Integrity } from '../../base/integrity.ts';
import { asciiNetstring, netstring, optionalNetstring } from '../../base/netstring.ts';
import { sha256 } from '../../base/sha256.ts';
import type { Schema } from '../schema/schema.ts';
import type { AuditEventsTable } from '../schema/schema-audit.ts';

/** The fields of an event that its link is computed from. */
export type ChainedEvent = Omit<Selectable<AuditEventsTable>, 'link'>;

/** The end of a chain or of a part of it: an event's id and its hash, the first 32 bytes of its link. */
export type ChainEnd = { readonly id: number; readonly link: Buffer };

/** The end of an empty chain. */
export const chainBeginning: ChainEnd = { id: 0, link: Buffer.alloc(32) };

/** Prefix of every hash, so that the format can change. */
const version = netstring('vault-audit-1');

/** Prefix of every tag. */
const tagVersion = netstring('vault-audit-2');

/** Size of a hash in bytes, and of a `vault-audit-1` link, which has no tag. */
const hashSize = 32;

/** How many events are read or chained at once. */
const eventsAtOnce = 400;

/**
 * The hash of an event whose predecessor has the hash `previous`: SHA-256 over netstrings (`length in bytes:bytes,`) of
 * the version, `previous` in hexadecimal, id, time in milliseconds, actor, action, resource, detail, address and
 * request id. `-` represents null.
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

/** The hash in a link, as in exports, feeds and checkpoints. */
export function hashIn(link: Buffer): Buffer {
  return link.length > hashSize ? link.subarray(0, hashSize) : link;
}

/** The stored link for a hash: the hash, and the tag over it. */
export function taggedLink(integrity: Integrity, hash: Buffer): Buffer {
  return Buffer.concat([hash, integrity.tag('audit event', tagText(hash))]);
}

/** The state of a link: `tagged` by this vault, `untagged` as before `vault-audit-2`, or `forged`. */
export function tagState(integrity: Integrity, link: Buffer): 'tagged' | 'untagged' | 'forged' {
  if (link.length <= hashSize) return 'untagged';
  const tag = link.subarray(hashSize);
  return integrity.fits('audit event', tagText(hashIn(link)), tag) ? 'tagged' : 'forged';
}

function tagText(hash: Buffer): string {
  return tagVersion + asciiNetstring(hash.toString('hex'));
}

/**
 * Adds links to all events after the last one that has a link; only for the migration that introduced links. An event
 * without a link that is added later stays that way, and is detected.
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

/** The last event with a link, or the beginning of the chain. */
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
