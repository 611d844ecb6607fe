/**
 * How the audit log records the rows that grant rights: the link of the event that tells of a change of such a row
 * carries the row's new tag. A row with another tag than that of the newest such event is refused, so an older row that
 * is put back is of no use as long as the log stands. A row that no event records still counts, because a lost log must
 * not stop all clients; `vault audit verify` names it.
 */
import { type AliasedRawBuilder, type Expression, sql } from 'kysely';
import type { Integrity } from '../../base/integrity.ts';
import { compiledQuery } from '../compiled-query.ts';
import type { Reader, Writer } from '../database.ts';
import { rowTagIn, tagState } from './audit-chain.ts';

/** What is recorded instead of a tag when a row was deleted. No row has this tag. */
export const goneRow = Buffer.alloc(32);

/** How the audit log names the rows, before their id or name. */
export type RowKind =
  | 'api-key'
  | 'acme-client'
  | 'acme-client-account'
  | 'enrollment'
  | 'administrator'
  | 'session'
  | 'pending-change'
  | 'certificate';

/** The link of the newest event that records a row; null if there is none. */
export type Recorded = { readonly recorded: Buffer | null };

/** The newest link that records the row, as a column of its query, so that both are of one moment. */
export function recordedLink<Alias extends string = 'recorded'>(
  kind: RowKind,
  id: string,
  alias = 'recorded' as Alias,
): AliasedRawBuilder<Buffer | null, Alias> {
  return sql<Buffer | null>`(select link from audit_events where resource = ${sql.lit(`${kind}:`)} || ${sql.ref(id)}
    and length(link) > 64 order by audit_events.id desc limit 1)`.as(alias);
}

export type RowState = Recorded & { readonly tag: Buffer | null | undefined };

/**
 * Whether the log records a row in this state last (`current`), in another one (`old`), or in none: its events were
 * removed, or not written by the vault.
 */
export function recordState(
  integrity: Integrity,
  { tag, recorded }: RowState,
): 'current' | 'old' | 'unrecorded' {
  if (recorded === null || tagState(integrity, recorded) !== 'tagged') return 'unrecorded';
  return rowTagIn(recorded)?.equals(tag ?? goneRow) === true ? 'current' : 'old';
}

/**
 * Whether the log records the row as it is, in a transaction that may have changed it: its own events come into the log
 * at its end.
 */
export function isRecorded(writer: Writer, integrity: Integrity, resource: string, row: RowState): boolean {
  const own = writer.rows.get(resource);
  return own === undefined ? recordState(integrity, row) === 'current' : own.equals(row.tag ?? goneRow);
}

const newest = compiledQuery((db, resource: Expression<string>) =>
  db
    .selectFrom('audit_events')
    .select(['id', 'link'])
    .where('resource', '=', resource)
    .where(sql<boolean>`length(link) > 64`)
    .orderBy('id', 'desc')
    .limit(sql.lit(1)),
);

/**
 * The newest event that records the row of this name, and the tag in it; undefined if there is none that the vault
 * wrote.
 */
export async function newestRecord(
  reader: Reader,
  integrity: Integrity,
  resource: string,
): Promise<{ readonly id: number; readonly tag: Buffer } | undefined> {
  const [found] = await newest(reader, resource);
  const tag = found && tagState(integrity, found.link) === 'tagged' ? rowTagIn(found.link) : undefined;
  return found && tag && { id: found.id, tag };
}
