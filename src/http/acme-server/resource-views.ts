/** Accounts, orders, authorizations and challenges as ACME clients see them (RFC 8555 §7.1). */
import type { z } from 'zod';
import { parseJson } from '../../base/json.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { ShownAccount } from '../../domain/acme-server/accounts/accounts.ts';
import type { StoredAuthorization, StoredChallenge } from '../../domain/acme-server/orders/authorizations.ts';
import { writtenIdentifier } from '../../domain/acme-server/orders/order-identifiers.ts';
import { identifiersOf, type ShownOrder, shownStatus } from '../../domain/acme-server/orders/orders.ts';
import type { accountSchema, authorizationSchema, challengeSchema, orderSchema } from './acme-schemas.ts';
import type { AcmeUrls } from './acme-urls.ts';

export function viewAccount(
  { id, status, contacts }: ShownAccount,
  urls: AcmeUrls,
): z.infer<typeof accountSchema> {
  return { status, contact: parseJson(contacts), orders: urls.orders(id) };
}

export function viewOrder(order: ShownOrder, urls: AcmeUrls, now: number): z.infer<typeof orderSchema> {
  const { id, not_before: notBefore, not_after: notAfter, certificate_id: certificateId, version } = order;
  const identifiers = identifiersOf(order);
  return {
    status: shownStatus(order, now),
    expires: formatTimestamp(order.expires_at),
    identifiers: identifiers.map(writtenIdentifier) as z.infer<typeof orderSchema>['identifiers'],
    ...(notBefore !== null && { notBefore: formatTimestamp(notBefore) }),
    ...(notAfter !== null && { notAfter: formatTimestamp(notAfter) }),
    ...(order.profile !== null && { profile: order.profile }),
    ...(order.replaces !== null && { replaces: order.replaces }),
    ...(order.error !== null && { error: parseJson(order.error) }),
    authorizations: identifiers.map((_, position) => urls.authorization(id, position)),
    finalize: urls.finalize(id),
    ...(order.status === 'valid' &&
      certificateId !== null &&
      version !== null && { certificate: urls.certificate(certificateId, version) }),
  };
}

/** The place of an authorization: the order, and its position there. */
export type AuthorizationPlace = { readonly orderId: number; readonly position: number };

export function viewAuthorization(
  authorization: StoredAuthorization,
  place: AuthorizationPlace,
  urls: AcmeUrls,
  now: number,
): z.infer<typeof authorizationSchema> {
  const { identifier, wildcard, status, expires, challenges } = authorization;
  // Once it is decided, only the challenge that decided it (RFC 8555 §7.1.4).
  const isDecided = status === 'valid' || status === 'invalid';
  const shown = challenges.filter((challenge) => !isDecided || challenge.status !== 'pending');
  const isOver = expires <= now && (status === 'pending' || status === 'valid');
  return {
    identifier: writtenIdentifier(identifier) as z.infer<typeof authorizationSchema>['identifier'],
    status: isOver ? 'expired' : status,
    expires: formatTimestamp(expires),
    challenges: shown.map((challenge) => viewChallenge(challenge, place, urls)),
    ...(wildcard && { wildcard: true as const }),
  };
}

export function viewChallenge(
  { type, status, token, validated, error }: StoredChallenge,
  { orderId, position }: AuthorizationPlace,
  urls: AcmeUrls,
): z.infer<typeof challengeSchema> {
  return {
    type,
    url: urls.challenge(orderId, position, type),
    status,
    token,
    ...(validated !== undefined && { validated: formatTimestamp(validated) }),
    ...(error !== undefined && { error: error as { type: string } }),
  };
}
