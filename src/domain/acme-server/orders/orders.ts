/** Orders of ACME clients (RFC 8555 §7.4): created, found by the account that created them, and listed. */
import { z } from 'zod';
import type { Identifier } from '../../../base/identifier.ts';
import { parseJson, toJson } from '../../../base/json.ts';
import {
  type AcmeClientOrderRow,
  findClientOrder,
  insertClientOrder,
  pageClientOrders,
} from '../../../db/tables/acme-server/acme-client-orders.ts';
import { together } from '../../../db/together.ts';
import type { DatabaseContext } from '../../contexts.ts';
import type { AcmeCaller } from '../accounts/callers.ts';
import { refuseReplaced, requireReplaceable } from '../certificates/replaced-certificates.ts';
import { profileForOrder, refusalOfNames } from '../clients/client-access.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { storeNonce } from '../protocol/nonces.ts';
import { newAuthorizations, orderLifetime, statusBy } from './authorizations.ts';
import { type GatewayContext, isGateway, refuseGatewayOrder, settledOrder } from './gateway-orders.ts';
import { identifierInput, readIdentifiers } from './order-identifiers.ts';
import { refuseTooMany } from './order-limits.ts';
import { readValidity } from './order-validity.ts';
import { longestLifetime } from './private-ca-orders.ts';

export const newOrderInput = z.object({
  // Duplicates are merged before they are counted.
  identifiers: z.array(identifierInput).max(1000),
  notBefore: z.string().max(100).optional(),
  notAfter: z.string().max(100).optional(),
  profile: z.string().max(200).optional(),
  replaces: z.string().max(300).optional(),
});

/**
 * Creates an order. It is ready at once if the binding of the client validates its names. Throws the problems of
 * identifiers, dates, profiles, limits and replaced certificates, and `rejectedIdentifier` for names that the client
 * may not order.
 */
export async function createOrder(
  vault: GatewayContext,
  caller: AcmeCaller,
  input: z.infer<typeof newOrderInput>,
): Promise<AcmeClientOrderRow> {
  const { issuer, account, client, nonce } = caller;
  const { reader } = vault.db;
  const { replaces } = input;
  const identifiers = readIdentifiers(input.identifiers);
  const refusal = refusalOfNames(client, identifiers);
  if (refusal !== undefined) throw refusal;
  const profile = profileForOrder(client, issuer.name, input.profile);
  const longest = isGateway(issuer) ? 0 : await longestLifetime(reader, issuer, identifiers, profile);
  if (isGateway(issuer)) await refuseGatewayOrder(vault, issuer, client, identifiers, input);
  const now = vault.world.now();
  const { notBefore = null, notAfter = null } = readValidity(input, longest, now);
  if (replaces !== undefined) await requireReplaceable(reader, caller, replaces, identifiers);
  const authorizations = newAuthorizations(vault, client, identifiers);
  // Without a write for most of those that are refused.
  await refuseTooMany(reader, client, now);
  const row = {
    acme_client_id: client.id,
    account_id: account.id,
    status: statusBy(authorizations),
    identifiers: toJson(identifiers),
    authorizations: toJson(authorizations),
    profile: profile ?? null,
    replaces: replaces ?? null,
    not_before: notBefore,
    not_after: notAfter,
    created_at: now,
    expires_at: now + orderLifetime,
    finished_at: null,
    csr: null,
    renewal_id: null,
    certificate_id: null,
    version: null,
    error: null,
  };
  const id = await vault.db.write(async (writer) => {
    if (replaces !== undefined) await refuseReplaced(writer, replaces, now);
    const [, , inserted] = await together([
      storeNonce(writer, nonce),
      // Again, because of orders that arrived together.
      refuseTooMany(writer, client, now),
      insertClientOrder(writer, row),
    ]);
    return inserted;
  });
  return { id, ...row };
}

/** An order as its owner sees it. */
export type ShownOrder = AcmeClientOrderRow;

/** The names and addresses of an order. */
export function identifiersOf({ identifiers }: Pick<AcmeClientOrderRow, 'identifiers'>): Identifier[] {
  return parseJson(identifiers);
}

/** The order with this id. Throws the same for one that does not exist and for one of another account. */
export async function requireOrder(
  vault: DatabaseContext,
  { account }: AcmeCaller,
  id: number | undefined,
): Promise<AcmeClientOrderRow> {
  const order = id === undefined ? undefined : await findClientOrder(vault.db.reader, id);
  if (order?.account_id === account.id) return settledOrder(vault, order);
  throw nothingHere();
}

/** The answer where an account has no such resource. */
export function nothingHere(): AcmeProblem {
  return new AcmeProblem('malformed', 'This account has no such resource.', { status: 404 });
}

/** What clients are told of the status of an order: one that was not finalized in time is invalid (§7.1.6). */
export function shownStatus(order: AcmeClientOrderRow, now: number): AcmeClientOrderRow['status'] {
  const isOver = order.expires_at <= now && (order.status === 'pending' || order.status === 'ready');
  return isOver ? 'invalid' : order.status;
}

/** The ids of an account's orders, newest first, and where the next page starts. */
export async function pageOrders(
  { db }: DatabaseContext,
  { account }: AcmeCaller,
  { before, limit }: { readonly before: number | undefined; readonly limit: number },
): Promise<{ readonly ids: number[]; readonly next: number | undefined }> {
  const found = await pageClientOrders(db.reader, account.id, { before, limit: limit + 1 });
  const ids = found.slice(0, limit);
  return { ids, next: found.length > limit ? ids.at(-1) : undefined };
}
