/** The table `pending_changes`: changes that wait for the approval of a second administrator, or have it. */
import type { Selectable } from 'kysely';
import { tagPendingChange } from '../../audit/pending-change-tags.ts';
import { type Recorded, recordedLink } from '../../audit/row-records.ts';
import type { Reader, Writer } from '../../database.ts';
import type { PendingChangesTable } from '../../schema/schema-access.ts';

export type PendingChangeRow = Selectable<PendingChangesTable>;

/** A new one: neither decided nor applied. */
export type NewPendingChange = Pick<
  PendingChangeRow,
  'operation' | 'summary' | 'digest' | 'role' | 'requested_by' | 'requested_at' | 'expires_at'
>;

export async function findPendingChange(
  reader: Reader,
  id: number,
): Promise<(PendingChangeRow & Recorded) | undefined> {
  return reader
    .selectFrom('pending_changes')
    .selectAll()
    .select(recordedLink('pending-change', 'pending_changes.id'))
    .where('id', '=', id)
    .executeTakeFirst();
}

/** Those of this request that are neither rejected nor applied at `now`, newest first. */
export async function openChangesOf(
  reader: Reader,
  { requested_by, digest }: Pick<PendingChangeRow, 'requested_by' | 'digest'>,
  now: number,
): Promise<(PendingChangeRow & Recorded)[]> {
  return reader
    .selectFrom('pending_changes')
    .selectAll()
    .select(recordedLink('pending-change', 'pending_changes.id'))
    .where('digest', '=', digest)
    .where('requested_by', '=', requested_by)
    .where('expires_at', '>', now)
    .where('applied_at', 'is', null)
    .where((either) => either.or([either('decision', 'is', null), either('decision', '=', 'approved')]))
    .orderBy('id', 'desc')
    .execute();
}

/** How many changes of this actor wait for a decision at `now`. */
export async function countWaiting(reader: Reader, requestedBy: string, now: number): Promise<number> {
  const { count } = await reader
    .selectFrom('pending_changes')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('expires_at', '>', now)
    .where('requested_by', '=', requestedBy)
    .where('decision', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Newest first: at most `limit` with ids below `before`. */
export async function pagePendingChanges(
  reader: Reader,
  { before, limit }: { readonly before: number; readonly limit: number },
): Promise<PendingChangeRow[]> {
  return reader
    .selectFrom('pending_changes')
    .selectAll()
    .where('id', '<', before)
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

export async function insertPendingChange(writer: Writer, row: NewPendingChange): Promise<PendingChangeRow> {
  const undecided = { decision: null, decided_by: null, decided_at: null, applied_at: null };
  const made = await writer
    .insertInto('pending_changes')
    .values({ ...row, ...undecided })
    .returningAll()
    .executeTakeFirstOrThrow();
  await tagPendingChange(writer, made);
  return made;
}

/** Decides a change and returns it; undefined if it was decided before. */
export async function setDecision(
  writer: Writer,
  id: number,
  decision: Pick<PendingChangeRow, 'decision' | 'decided_by' | 'decided_at' | 'expires_at'>,
): Promise<PendingChangeRow | undefined> {
  const row = await writer
    .updateTable('pending_changes')
    .set(decision)
    .where('id', '=', id)
    .where('decision', 'is', null)
    .returningAll()
    .executeTakeFirst();
  if (row !== undefined) await tagPendingChange(writer, row);
  return row;
}

/** Marks an approval as used, and returns whether it was not used before. */
export async function setApplied(writer: Writer, id: number, at: number): Promise<boolean> {
  const row = await writer
    .updateTable('pending_changes')
    .set({ applied_at: at })
    .where('id', '=', id)
    .where('applied_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
  if (row !== undefined) await tagPendingChange(writer, row);
  return row !== undefined;
}

/** Makes a used approval usable again. */
export async function clearApplied(writer: Writer, id: number): Promise<void> {
  const row = await writer
    .updateTable('pending_changes')
    .set({ applied_at: null })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
  if (row !== undefined) await tagPendingChange(writer, row);
}

/** Deletes changes that expired before `since`. */
export async function deleteChangesBefore(writer: Writer, since: number): Promise<void> {
  await writer.deleteFrom('pending_changes').where('expires_at', '<', since).execute();
}
