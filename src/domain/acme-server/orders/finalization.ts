/** Finalizes orders (RFC 8555 §7.4): checks the CSR, and has the certificate issued. */
import { z } from 'zod';
import {
  type AcmeClientOrderRow,
  findClientOrder,
} from '../../../db/tables/acme-server/acme-client-orders.ts';
import type { TurnsContext } from '../../contexts.ts';
import type { AcmeCaller } from '../accounts/callers.ts';
import { refusalOfNames } from '../clients/client-access.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { type GatewayContext, isGateway, orderUpstream } from './gateway-orders.ts';
import { type IssuanceContext, issueOrder } from './order-issuance.ts';
import { readOrderRequest } from './order-requests.ts';
import { identifiersOf, nothingHere, shownStatus } from './orders.ts';

export const finalizeInput = z.object({ csr: z.string() });

type FinalizeContext = IssuanceContext & TurnsContext & GatewayContext;

/**
 * Finalizes an order of the caller and returns it as it is afterwards. One that is finalized already is returned as it
 * is, so that a client may repeat its request. Throws `orderNotReady`, `badCSR`, `badPublicKey`, and what the CA
 * refuses.
 */
export async function finalizeOrder(
  vault: FinalizeContext,
  caller: AcmeCaller,
  order: AcmeClientOrderRow,
  { csr }: z.infer<typeof finalizeInput>,
): Promise<AcmeClientOrderRow> {
  const { issuer, client } = caller;
  if (isFinalized(order)) return order;
  requireReady(order, vault.world.now());
  const request = await readOrderRequest(vault.db.reader, issuer.id, order, csr);
  const refusal = refusalOfNames(client, identifiersOf(order));
  if (refusal !== undefined) throw refusal;
  // One at a time, so that requests that arrive together do not each have a certificate issued.
  return vault.turns.take(`acme order ${order.id}`, async () => {
    const current = await findClientOrder(vault.db.reader, order.id);
    if (current === undefined) throw nothingHere();
    if (isFinalized(current)) return current;
    requireReady(current, vault.world.now());
    return isGateway(issuer)
      ? orderUpstream(vault, caller, current, request)
      : issueOrder(vault, { caller, order: current, request });
  });
}

function requireReady(order: AcmeClientOrderRow, now: number): void {
  const status = shownStatus(order, now);
  if (status === 'ready') return;
  const detail = `The order is ${status}; only an order that is ready can be finalized.`;
  throw new AcmeProblem('orderNotReady', detail);
}

function isFinalized({ status }: AcmeClientOrderRow): boolean {
  return status === 'valid' || status === 'processing';
}
