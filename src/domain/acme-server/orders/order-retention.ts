/**
 * How long orders and used nonces are kept: what has expired goes in short transactions, between which others write.
 */
import { day, hour, minute } from '../../../base/duration.ts';
import type { Reader, Writer } from '../../../db/database.ts';
import {
  deleteClientOrders,
  deleteFailedOrders,
  firstOrderExpiry,
  firstOrderFailure,
} from '../../../db/tables/acme-server/acme-client-orders.ts';
import { deleteNonces, firstNonceExpiry } from '../../../db/tables/acme-server/acme-nonces.ts';
import type { TimedContext } from '../../contexts.ts';

/** Rows with an expiry, or another time after which they are kept for a while. */
type Expiring = {
  readonly first: (reader: Reader) => Promise<number | undefined>;
  readonly remove: (writer: Writer, before: number, limit: number) => Promise<number>;
  /** How long after that time, in milliseconds. */
  readonly keepFor: number;
};

/** After its expiry an order can still be read by its client for a week, unless it failed. */
const orders: Expiring = { first: firstOrderExpiry, remove: deleteClientOrders, keepFor: 7 * day };

/**
 * A client reads right away why its order failed. With the errors of a hundred names an order takes 100 KB, and one
 * client may fail a thousand times an hour: kept for a week, that would fill a disk. The limit of a client counts
 * failures of the last hour, by clocks of nodes that differ a little.
 */
const failedOrders: Expiring = { first: firstOrderFailure, remove: deleteFailedOrders, keepFor: 2 * hour };

/** Clocks of nodes differ a little, and none must accept a nonce again. */
const nonces: Expiring = { first: firstNonceExpiry, remove: deleteNonces, keepFor: minute };

/** A few milliseconds. */
const rowsAtOnce = 500;

/** Between two transactions, so that requests have their turn. */
const pause = 20;

/** Deletes orders that failed two hours ago, and others that expired a week ago. Returns how many. */
export async function pruneOrders(vault: TimedContext, signal: AbortSignal): Promise<number> {
  return (await prune(vault, failedOrders, signal)) + (await prune(vault, orders, signal));
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
