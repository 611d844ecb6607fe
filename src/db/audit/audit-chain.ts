/**
 * The chain of the audit log. The link of each event is a hash over the previous link and its own fields, which anyone
 * can compute, and a tag over that hash, which requires the vault's integrity key: with write access to the database
 * alone, events can be neither changed undetected nor forged.
 */
import type { Kysely, Selectable } from 'kysely';
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

/** Prefix of every tag; of those of earlier versions, which record no rows. */
const tagVersion = netstring('vault-audit-3');
const olderTagVersion = netstring('vault-audit-2');

/** Size of a hash in bytes, and of a `vault-audit-1` link, which has no tag. */
const hashSize = 32;

/** Size of a link in bytes if its event records no row; the tag of the row follows. */
const bareSize = 64;

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

/**
 * The stored link for a hash: the hash, the tag over it and over the tag of the row that the event records, and that
 * tag.
 */
export function taggedLink(integrity: Integrity, hash: Buffer, row: Buffer = noRow): Buffer {
  return Buffer.concat([hash, integrity.tag('audit event', tagText(hash, row)), row]);
}

/** The state of a link: `tagged` by this vault, `untagged` as before `vault-audit-2`, or `forged`. */
export function tagState(integrity: Integrity, link: Buffer): 'tagged' | 'untagged' | 'forged' {
  if (link.length <= hashSize) return 'untagged';
  const tag = link.subarray(hashSize, bareSize);
  const isTagged = integrity.fits('audit event', tagText(hashIn(link), link.subarray(bareSize)), tag);
  return isTagged || isFromBeforeRecords(integrity, link) ? 'tagged' : 'forged';
}

/** Whether a version of the vault wrote the link that recorded no rows. */
export function isFromBeforeRecords(integrity: Integrity, link: Buffer): boolean {
  if (link.length !== bareSize) return false;
  const text = olderTagVersion + asciiNetstring(hashIn(link).toString('hex'));
  return integrity.fits('audit event', text, link.subarray(hashSize));
}

/** The tag of the row that an event records with its link; undefined if it records none. */
export function rowTagIn(link: Buffer): Buffer | undefined {
  return link.length > bareSize ? link.subarray(bareSize) : undefined;
}

const noRow = Buffer.alloc(0);

function tagText(hash: Buffer, row: Buffer): string {
  return tagVersion + asciiNetstring(hash.toString('hex')) + asciiNetstring(row.toString('hex'));
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
