/** The table `renewals`: the queue of renewals and their history. */
import { type Selectable, sql, type Updateable } from 'kysely';
import type { Reader, Writer } from './database.ts';
import type { RenewalsTable } from './schema.ts';

export type RenewalRow = Selectable<RenewalsTable>;

/**
 * The condition that a renewal is queued or running. The states are literals, not parameters: only then does SQLite
 * see that the partial index of open renewals answers it, however long the history is.
 */
export const isOpen = sql<boolean>`renewals.status in ('queued', 'running')`;

export async function findRenewal(reader: Reader, id: number): Promise<RenewalRow | undefined> {
  return reader.selectFrom('renewals').selectAll().where('id', '=', id).executeTakeFirst();
}

/** The renewal of a certificate that is queued or running; there is at most one. */
export async function findOpenRenewal(
  reader: Reader,
  certificateId: number,
): Promise<RenewalRow | undefined> {
  return reader
    .selectFrom('renewals')
    .selectAll()
    .where('certificate_id', '=', certificateId)
    .where(isOpen)
    .executeTakeFirst();
}

/** The oldest renewal that is queued, or whose lease has run out, asked for at or before `now`. */
export async function findClaimableRenewal(reader: Reader, now: number): Promise<RenewalRow | undefined> {
  return (
    reader
      .selectFrom('renewals')
      .selectAll()
      .where(isOpen)
      .where(({ or, eb }) => or([eb('status', '=', 'queued'), eb('lease_expires_at', '<=', now)]))
      // With the plus SQLite sorts the few open renewals; for the bare id it reads the whole history in its order.
      .orderBy(sql`+renewals.id`)
      .limit(1)
      .executeTakeFirst()
  );
}

/** Queues a renewal and returns its id. */
export async function insertRenewal(
  writer: Writer,
  row: { certificate_id: number; requested_by: string; requested_at: number },
): Promise<number> {
  const { id } = await writer
    .insertInto('renewals')
    .values({ ...row, status: 'queued' })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

export async function updateRenewal(
  writer: Writer,
  id: number,
  changes: Updateable<RenewalsTable>,
): Promise<void> {
  await writer.updateTable('renewals').set(changes).where('id', '=', id).execute();
}

/**
 * Changes a running renewal, but only while `owner` still holds its lease. Returns whether it did: a worker that lost
 * the lease must not write over what the next one does.
 */
export async function updateLeased(
  writer: Writer,
  id: number,
  owner: string,
  changes: Updateable<RenewalsTable>,
): Promise<boolean> {
  const result = await writer
    .updateTable('renewals')
    .set(changes)
    .where('id', '=', id)
    .where('status', '=', 'running')
    .where('lease_owner', '=', owner)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}
