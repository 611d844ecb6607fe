/**
 * Orders at the directory of an ACME issuer: the vault orders the certificate at that CA, with the CSR of the client,
 * by a renewal of the client's certificate. So a crash resumes the same order, and the limits of the CA count for all.
 */
import { hour, minute, second } from '../../../base/duration.ts';
import type { Identifier } from '../../../base/identifier.ts';
import { parseJson, toJson } from '../../../base/json.ts';
import { Problem } from '../../../base/problem.ts';
import { encodePem } from '../../../crypto/pem.ts';
import { isSameRequest, type SigningRequest } from '../../../crypto/x509/signing-request.ts';
import type { Reader } from '../../../db/database.ts';
import {
  type AcmeClientOrderRow,
  findClientOrder,
  updateClientOrder,
} from '../../../db/tables/acme-server/acme-client-orders.ts';
import { findOpenForNames } from '../../../db/tables/acme-server/upstream-orders.ts';
import type { CertificateRow } from '../../../db/tables/certificates/certificates.ts';
import { findAcmeIssuer, type IssuerRow } from '../../../db/tables/issuance/issuers.ts';
import { findOpenRenewal, findRenewal } from '../../../db/tables/renewals/renewals.ts';
import type { DatabaseContext, TimedContext } from '../../contexts.ts';
import { refuseWildcardsWithoutZone, type ZoneContext } from '../../dns-providers/wildcard-zones.ts';
import { holdOnOrder, nameSetOf } from '../../orders/issuance-limits.ts';
import { problemOfChange } from '../../renewals/client-outcome.ts';
import { type QueueContext, queueRenewal } from '../../renewals/renewal-queue.ts';
import type { AcmeCaller } from '../accounts/callers.ts';
import { certificateFor, findOwned } from '../certificates/owned-certificates.ts';
import type { AcmeClient } from '../clients/client-access.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { storeNonce } from '../protocol/nonces.ts';

/** Checks and places orders at other CAs. */
export type GatewayContext = QueueContext & ZoneContext;

/** How long to wait after so many failures in a row of the same names; after more of them, the last. */
const pausesAfterFailures = [0, 0, minute, 10 * minute, hour];

/** When to look again while another order for the same names is under way. */
const pauseWithTwin = 30 * second;

const shortestPause = 3 * second;
const maxPause = 30 * second;

/** Whether a directory is that of a CA elsewhere. */
export function isGateway({ type }: Pick<IssuerRow, 'type'>): boolean {
  return type === 'acme';
}

/**
 * Throws what speaks against an order before the CA is asked: `malformed` for dates, which no CA promises,
 * `rejectedIdentifier` for a wildcard that the vault cannot validate, and `rateLimited`.
 */
export async function refuseGatewayOrder(
  vault: GatewayContext,
  issuer: IssuerRow,
  client: Pick<AcmeClient, 'id'>,
  identifiers: readonly Identifier[],
  dates: { readonly notBefore?: string | undefined; readonly notAfter?: string | undefined },
): Promise<void> {
  if (dates.notBefore !== undefined || dates.notAfter !== undefined) {
    throw new AcmeProblem('malformed', 'The CA chooses notBefore and notAfter itself; order without them.');
  }
  await refuseWildcards(vault, issuer, identifiers);
  await refuseLimited(vault, issuer, client, identifiers);
}

async function refuseWildcards(
  vault: GatewayContext,
  issuer: IssuerRow,
  identifiers: readonly Identifier[],
): Promise<void> {
  try {
    await refuseWildcardsWithoutZone(vault, issuer, { domains: identifiers });
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'invalid_request') throw error;
    throw new AcmeProblem('rejectedIdentifier', error.message, { cause: error });
  }
}

/** Throws `rateLimited` while the CA accepts no order for these names, as far as the vault knows. */
async function refuseLimited(
  { db: { reader }, world }: TimedContext,
  issuer: IssuerRow,
  client: Pick<AcmeClient, 'id'>,
  identifiers: readonly Identifier[],
): Promise<void> {
  const now = world.now();
  const ca = await findAcmeIssuer(reader, issuer.id);
  if (ca === undefined) throw new AcmeProblem('serverInternal', `Issuer ${issuer.name} was removed.`);
  const refuse = (until: number, reason: string) => {
    throw new AcmeProblem('rateLimited', reason, { retryAfterMs: until - now });
  };
  const paused = ca.paused_until ?? 0;
  if (paused > now)
    refuse(paused, `The CA asked the vault to wait: ${ca.pause_reason ?? 'it is overloaded'}`);
  const known = await findOwned(reader, client, issuer, identifiers);
  const asked = known?.retry_after ?? 0;
  if (asked > now) refuse(asked, 'The CA asked the vault to wait with orders for these names.');
  const failed = known === undefined ? 0 : afterFailures(known);
  if (failed > now) {
    refuse(
      failed,
      `The last ${known?.failed_attempts} orders for these names failed; correct what is wrong first.`,
    );
  }
  const unknown = {
    id: 0,
    domains: toJson(identifiers),
    current_version: null,
    ari_window_start: null,
  };
  const hold = await holdOnOrder(reader, ca, known ?? unknown, now);
  if (hold !== undefined)
    refuse(hold.until, `The CA accepts no order for these names at present: ${hold.reason}`);
}

function afterFailures({ failed_attempts: failures, last_attempt_at: last }: CertificateRow): number {
  const pause = pausesAfterFailures[Math.min(failures, pausesAfterFailures.length - 1)] ?? 0;
  return (last ?? 0) + pause;
}

/**
 * Has the certificate of an order that is ready ordered at the CA, and returns the order: `processing`. An order with
 * the same CSR and profile as one that is under way joins it. Throws `rateLimited` while another order for the same
 * names is under way.
 */
export async function orderUpstream(
  vault: GatewayContext,
  { issuer, client, actor, nonce }: AcmeCaller,
  order: AcmeClientOrderRow,
  request: SigningRequest,
): Promise<AcmeClientOrderRow> {
  const identifiers = parseJson(order.identifiers);
  await refuseLimited(vault, issuer, client, identifiers);
  await vault.db.write(async (writer) => {
    await storeNonce(writer, nonce);
    // Another process may have finalized it meanwhile; the client gets what that one did.
    if ((await findClientOrder(writer, order.id))?.status !== order.status) return;
    await refuseTwin(writer, issuer, client, order, request);
    const certificate = await certificateFor(
      writer,
      {
        ...{ client, issuer, identifiers, csr: request.der },
        ...{ profile: order.profile ?? undefined, keyType: request.keyType },
      },
      vault.world.now(),
    );
    const { id } = await queueRenewal(vault, writer, actor, certificate);
    await updateClientOrder(writer, order, {
      ...{ status: 'processing', csr: request.der },
      ...{ renewal_id: id, certificate_id: certificate.id },
    });
  });
  vault.renewalQueued.notify();
  const stored = await findClientOrder(vault.db.reader, order.id);
  if (stored === undefined) throw new Error('the order vanished');
  return stored;
}

/**
 * Throws `rateLimited` if the vault orders a certificate for the same names already, unless it is for the same request.
 */
async function refuseTwin(
  reader: Reader,
  issuer: IssuerRow,
  client: Pick<AcmeClient, 'id'>,
  order: Pick<AcmeClientOrderRow, 'identifiers' | 'profile'>,
  request: SigningRequest,
): Promise<void> {
  const identifiers = parseJson(order.identifiers);
  const open = await findOpenForNames(reader, issuer.id, nameSetOf(identifiers));
  if (open === undefined) return;
  const own = await findOwned(reader, client, issuer, identifiers);
  const isOwn = own !== undefined && (await findOpenRenewal(reader, own.id))?.id === open.id;
  const isSame =
    isOwn &&
    own.profile === order.profile &&
    isSameRequest(own.csr, encodePem('CERTIFICATE REQUEST', request.der));
  if (isSame) return;
  throw new AcmeProblem(
    'rateLimited',
    'Another order for the same names is under way at the CA; wait for it.',
    {
      retryAfterMs: pauseWithTwin,
    },
  );
}

/** An order as its renewal left it: without one, because the certificate was deleted, it can no longer succeed. */
export async function settledOrder(
  { db }: DatabaseContext,
  order: AcmeClientOrderRow,
): Promise<AcmeClientOrderRow> {
  if (order.status !== 'processing') return order;
  const renewal = order.renewal_id === null ? undefined : await findRenewal(db.reader, order.renewal_id);
  if (renewal?.status === 'queued' || renewal?.status === 'running') return order;
  const current = await findClientOrder(db.reader, order.id);
  if (current !== undefined && current.status !== 'processing') return current;
  const reason = renewal === undefined ? 'the certificate was deleted' : 'it was replaced by another one';
  return { ...order, status: 'invalid', error: toJson(problemOfChange(reason)) };
}

/**
 * When to look at an order again that is processing, in milliseconds: soon at first, and later where the CA makes the
 * vault wait.
 */
export async function pauseOf(
  { db, world }: TimedContext,
  { renewal_id: id }: AcmeClientOrderRow,
): Promise<number> {
  const renewal = id === null ? undefined : await findRenewal(db.reader, id);
  const now = world.now();
  const held = (renewal?.held_until ?? 0) - now;
  if (held > 0) return Math.min(held, hour);
  const waited = now - (renewal?.requested_at ?? now);
  return Math.min(Math.max(waited / 5, shortestPause), maxPause);
}
