/** How much an ACME client may order, so that one in a loop takes nothing from others. */
import { hour } from '../../../base/duration.ts';
import { hasOpenOrders, orderedBeforeLast } from '../../../db/tables/acme-server/acme-client-orders.ts';
import type { TimedContext } from '../../contexts.ts';
import type { AcmeClient } from '../clients/client-access.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';

/** Orders of a client that are not finished. */
export const maxOpenOrders = 1000;

const pauseWithOpenOrders = hour;

/**
 * Throws `rateLimited` with the time to wait if the client has ordered as often as it may, or has too many open orders.
 */
export async function refuseTooMany(
  { db, world }: TimedContext,
  { id, name, rate }: AcmeClient,
): Promise<void> {
  const now = world.now();
  if (rate !== undefined) {
    const since = rate === 0 ? now : await orderedBeforeLast(db.reader, id, rate);
    if (since !== undefined && since > now - hour) {
      throw new AcmeProblem(
        'rateLimited',
        `ACME client ${id} (${name}) may order ${rate} times per hour. Its rate is set with "vault acme-client update ${id} --rate NUMBER".`,
        { retryAfterMs: since + hour - now },
      );
    }
  }
  if (!(await hasOpenOrders(db.reader, id, { count: maxOpenOrders, now }))) return;
  throw new AcmeProblem(
    'rateLimited',
    `ACME client ${id} (${name}) has ${maxOpenOrders} orders that are not finished. Finalize them, or wait until they expire.`,
    { retryAfterMs: pauseWithOpenOrders },
  );
}
