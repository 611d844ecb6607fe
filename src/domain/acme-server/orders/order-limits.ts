/** How much an ACME client may order, so that one in a loop takes nothing from others. */
import { hour } from '../../../base/duration.ts';
import type { Reader } from '../../../db/database.ts';
import { countClientOrders, orderedBeforeLast } from '../../../db/tables/acme-server/acme-client-orders.ts';
import { together } from '../../../db/together.ts';
import type { AcmeClient } from '../clients/client-access.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';

/**
 * Orders of a client that are not finished, and those that failed within the last hour. They have one limit, because
 * each that is not finished may fail: with two, twice as many could fail in an hour.
 */
export const maxUnsuccessfulOrders = 1000;

const pauseWithOpenOrders = hour;

/**
 * Throws `rateLimited` with the time to wait if the client has ordered as often as it may, or has too many orders that
 * are open or failed lately. Call it in the transaction that adds the order: all queries are sent before it returns.
 */
export async function refuseTooMany(reader: Reader, client: AcmeClient, now: number): Promise<void> {
  const since = now - hour;
  const { id, rate } = client;
  const [last, { open, failed, firstFailure }] = await together([
    rate === undefined ? Promise.resolve(undefined) : orderedBeforeLast(reader, id, { count: rate, since }),
    countClientOrders(reader, id, { now, since, limit: maxUnsuccessfulOrders }),
  ]);
  const subject = `ACME client ${id} (${client.name})`;
  if (last !== undefined) {
    throw rateLimited(
      `${subject} may order ${rate} times per hour. Its rate is set with "vault acme-client update ${id} --rate NUMBER".`,
      last - since,
    );
  }
  if (open + failed < maxUnsuccessfulOrders) return;
  if (firstFailure === null) {
    throw rateLimited(
      `${subject} has ${open} orders that are not finished. Finalize them, or wait until they expire.`,
      pauseWithOpenOrders,
    );
  }
  throw rateLimited(
    `${subject} has ${open} orders that are not finished, and ${failed} that failed within the last hour; the limit is ${maxUnsuccessfulOrders} together. Fix the errors that the orders report.`,
    firstFailure - since,
  );
}

function rateLimited(detail: string, retryAfterMs: number): AcmeProblem {
  return new AcmeProblem('rateLimited', detail, { retryAfterMs });
}
