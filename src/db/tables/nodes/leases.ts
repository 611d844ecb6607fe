/** The leases of renewals and of notification deliveries: who holds them, and how they end early. */
import { sql } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import { isOpen as isOpenDelivery } from '../notifications/notification-deliveries.ts';

/** A literal, so that SQLite uses the partial index of running renewals. */
const isRunning = sql<boolean>`renewals.status = 'running'`;

/** The owners of the leases that have not expired at `now`. */
export async function listLeaseOwners(reader: Reader, now: number): Promise<string[]> {
  const renewals = reader
    .selectFrom('renewals')
    .select('lease_owner')
    .where(isRunning)
    .where('lease_expires_at', '>', now);
  const deliveries = reader
    .selectFrom('notification_deliveries')
    .select('lease_owner')
    .where(isOpenDelivery)
    .where('status', '=', 'sending')
    .where('lease_expires_at', '>', now);
  const rows = await renewals.union(deliveries).execute();
  return rows.map(({ lease_owner }) => lease_owner).filter((owner) => owner !== null);
}

/** Ends the leases of these owners at `now`. */
export async function endLeases(writer: Writer, owners: readonly string[], now: number): Promise<void> {
  const changes = { lease_expires_at: now };
  await writer
    .updateTable('renewals')
    .set(changes)
    .where(isRunning)
    .where('lease_owner', 'in', owners)
    .execute();
  await writer
    .updateTable('notification_deliveries')
    .set(changes)
    .where(isOpenDelivery)
    .where('status', '=', 'sending')
    .where('lease_owner', 'in', owners)
    .execute();
}
