/**
 * How long orders and used nonces are kept: what has expired goes in short transactions, between which others write.
 */
import { day, minute } from '../../../base/duration.ts';
import type { Reader, Writer } from '../../../db/database.ts';
import { deleteClientOrders, firstOrderExpiry } from '../../../db/tables/acme-server/acme-client-orders.ts';
import { deleteNonces, firstNonceExpiry } from '../../../db/tables/acme-server/acme-nonces.ts';
import type { TimedContext } from '../../contexts.ts';

/** Rows with an expiry. */
type Expiring = {
  readonly first: (reader: Reader) => Promise<number | undefined>;
  readonly remove: (writer: Writer, before: number, limit: number) => Promise<number>;
  /** How long after their expiry, in milliseconds. */
  readonly keepFor: number;
};

/** After its expiry an order can still be read by its client for a week, finished or not. */
const orders: Expiring = { first: firstOrderExpiry, remove: deleteClientOrders, keepFor: 7 * day };

/** Clocks of nodes differ a little, and none must accept a nonce again. */
const nonces: Expiring = { first: firstNonceExpiry, remove: deleteNonces, keepFor: minute };

/** A few milliseconds. */
const rowsAtOnce = 500;

/** Between two transactions, so that requests have their turn. */
const pause = 20;

/** Deletes orders that expired a week ago. Returns how many. */
export function pruneOrders(vault: TimedContext, signal: AbortSignal): Promise<number> {
  return prune(vault, orders, signal);
}

/** Deletes nonces that are not accepted any more. Returns how many. */
export function pruneNonces(vault: TimedContext, signal: AbortSignal): Promise<number> {
  return prune(vault, nonces, signal);
}

async function prune(
  { db, world }: TimedContext,
  { first, remove, keepFor }: Expiring,
  signal: AbortSignal,
): Promise<number> {
  const before = world.now() - keepFor;
  // A vault without ACME clients writes nothing.
  if (((await first(db.reader)) ?? before) >= before) return 0;
  let removed = 0;
  while (!signal.aborted) {
    const some = await db.write((writer) => remove(writer, before, rowsAtOnce));
    removed += some;
    if (some < rowsAtOnce) break;
    await world.sleep(pause, signal);
  }
  return removed;
}
