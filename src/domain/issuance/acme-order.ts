/**
 * A certificate from an ACME CA: the order of RFC 8555 §7.4 as a walk from whatever state it is in to the certificate.
 * Its URL is stored as soon as it is known, so that a crash or a cut connection goes on with the same order.
 */
import { X509Certificate } from 'node:crypto';
import type { AcmeClient } from '../../acme/acme-client.ts';
import { AcmeError } from '../../acme/acme-error.ts';
import type { AcmeIdentifier, AcmeOrder } from '../../acme/acme-types.ts';
import { downloadCertificate, OtherKeyError } from '../../acme/issued-certificate.ts';
import { fetchOrder, finalizeOrder, newOrder, waitForOrder } from '../../acme/orders.ts';
import { renewalInfoId } from '../../acme/renewal-info.ts';
import { minute, second } from '../../base/duration.ts';
import { type Identifier, isAddress } from '../../base/identifier.ts';
import type { Secret } from '../../base/secret.ts';
import { certificateRequest } from '../../crypto/certificate-request.ts';
import { publicKeyOf } from '../../crypto/key-pair.ts';
import { findVersion } from '../../db/tables/certificate-versions.ts';
import type { AcmeIssuerRow, IssuerRow } from '../../db/tables/issuers.ts';
import { findRenewal } from '../../db/tables/renewals.ts';
import type { DatabaseContext } from '../contexts.ts';
import type { VersionMaterial } from '../versions/versions.ts';
import {
  ensureAccount,
  forgetAccount,
  hasOtherKey,
  lossOf,
  type OwnAccount,
  requireAcmeIssuer,
} from './acme-account.ts';
import { satisfyAuthorizations } from './acme-authorizations.ts';
import { type Attempt, keep, LeaseLost, step } from './attempt.ts';
import type { OrderContext } from './issuance-contexts.ts';
import { refuseSuperseded, whileWanted } from './still-wanted.ts';

/** How often, and after how long, an order goes on after the connection failed or the CA was too busy. */
const patience = [second, 2 * second, 5 * second, 15 * second, 30 * second, minute, 2 * minute];

/** How often in one attempt the account may turn out to be gone or to have another key. */
const mostAccountTroubles = 2;

/** How often in one attempt an order may turn out to be finalized by another renewal of the same names. */
const mostSharedOrders = 3;

/** A CA that asks to wait longer than this gets its wait between attempts, not within one. */
const shortWait = 2 * minute;

type Ordering = {
  readonly vault: OrderContext;
  readonly attempt: Attempt;
  readonly issuer: IssuerRow;
  readonly ca: AcmeIssuerRow;
  readonly client: AcmeClient;
  readonly account: OwnAccount;
  readonly identifiers: readonly Identifier[];
  readonly privateKey: Secret;
  /** The order under way; in the row, and here because the row that was claimed is older. */
  readonly state: { orderUrl: string | null };
};

/** Orders and fetches the certificate for the attempt. Throws AcmeError, DnsProviderError, Superseded or LeaseLost. */
export async function issueFromAcme(
  vault: OrderContext,
  attempt: Attempt,
  issuer: IssuerRow,
  privateKey: Secret,
): Promise<VersionMaterial> {
  const ca = await requireAcmeIssuer(vault, issuer);
  const client = vault.acme.at(ca);
  const identifiers = JSON.parse(attempt.certificate.domains) as Identifier[];
  const parts = { vault, attempt, issuer, ca, client, identifiers, privateKey };
  for (let tries = 0; ; tries += 1) {
    await step(vault, attempt, `asking ${issuer.name} for its directory and the account`);
    const account = await ensureAccount(vault, issuer, client, attempt.signal);
    const state = { orderUrl: await resumedOrder(vault, attempt, account) };
    try {
      const issued = await alone({ ...parts, account, state });
      const acme = { directoryUrl: ca.directory_url, accountId: account.id };
      return { source: 'acme', ...issued, privateKey, acme };
    } catch (error) {
      if (!(error instanceof AcmeError) || tries === mostAccountTroubles) throw error;
      const isOpenedAnew = await hasOtherKey(vault, client, account, attempt.signal);
      const loss = isOpenedAnew ? undefined : await lossOf(client, account, error, attempt.signal);
      if (loss === undefined && !isOpenedAnew) throw error;
      vault.log.warn(
        { err: error, issuer: issuer.name, account: account.id },
        'ACME account rejected by the CA; looking it up again',
      );
      if (loss !== undefined) await forgetAccount(vault, issuer, account.id, loss);
    }
  }
}

/** The order that an earlier worker began, where it is this account's and for the names that are still wanted. */
async function resumedOrder(
  { db }: DatabaseContext,
  { renewal: { id }, certificate }: Attempt,
  account: OwnAccount,
): Promise<string | null> {
  const renewal = await findRenewal(db.reader, id);
  if (renewal === undefined) throw new LeaseLost();
  const isOurs = renewal.acme_account_id === account.id && renewal.order_domains === certificate.domains;
  return isOurs ? renewal.order_url : null;
}

/** Orders again where the CA gave two renewals of the same names one order, and the other finalized it with its own key. */
async function alone(ordering: Ordering): Promise<{ leaf: Buffer; chain: Buffer[] }> {
  const { vault, attempt, issuer, state } = ordering;
  for (let shared = 0; ; shared += 1) {
    try {
      return await throughTrouble(ordering);
    } catch (error) {
      if (!(error instanceof OtherKeyError) || shared === mostSharedOrders) throw error;
      vault.log.info(
        { issuer: issuer.name, order: state.orderUrl },
        'order already finalized with another key; creating a new order',
      );
      await keep(vault, attempt, { order_url: null, order_domains: null });
      state.orderUrl = null;
    }
  }
}

/** Goes on with the order after connections that failed and short waits the CA asks for. */
async function throughTrouble(ordering: Ordering): Promise<{ leaf: Buffer; chain: Buffer[] }> {
  const { vault, attempt, issuer, state } = ordering;
  for (let troubles = 0; ; troubles += 1) {
    try {
      return await fulfil(ordering);
    } catch (error) {
      const wait = patience[troubles];
      if (wait === undefined || state.orderUrl === null || !isPassing(error)) throw error;
      vault.log.warn({ err: error, issuer: issuer.name }, 'order interrupted; retrying');
      await step(vault, attempt, `waiting to go on: ${error.message}`);
      await vault.world.sleep(Math.max(wait, error.retryAfterMs ?? 0), attempt.signal);
      attempt.signal.throwIfAborted();
    }
  }
}

function isPassing(error: unknown): error is AcmeError {
  if (!(error instanceof AcmeError)) return false;
  if (error.kind === 'network' || error.kind === 'timeout') return true;
  const isBusy = (error.status ?? 0) >= 500 || error.status === 429;
  return isBusy && (error.retryAfterMs ?? 0) <= shortWait;
}

async function fulfil(ordering: Ordering): Promise<{ leaf: Buffer; chain: Buffer[] }> {
  const { vault, attempt, issuer, ca, client, account, identifiers, privateKey } = ordering;
  const { signal } = attempt;
  let order = (await orderUnderWay(ordering)) ?? (await orderAnew(ordering));
  if (order.status === 'pending') {
    const { url } = order;
    const underWay = { client, account, order };
    order = await whileWanted(vault, attempt, async (watched) => {
      await satisfyAuthorizations(vault, watched, underWay);
      await step(vault, watched, `waiting for ${issuer.name} to accept the proofs`);
      return waitForOrder(client, account, url, ['ready', 'processing', 'valid'], watched.signal);
    });
  }
  if (order.status === 'ready') {
    await refuseSuperseded(vault, attempt);
    await step(vault, attempt, 'sending the certificate request');
    const request = await certificateRequest(identifiers, privateKey);
    order = await finalize(ordering, order, request);
  }
  if (order.status !== 'valid' || order.certificate === undefined) {
    await step(vault, attempt, `waiting for ${issuer.name} to issue`);
    order = await waitForOrder(client, account, order.url, ['valid'], signal);
  }
  await step(vault, attempt, 'fetching the certificate');
  return downloadCertificate(
    client,
    account,
    order.certificate ?? '',
    {
      publicKey: publicKeyOf(privateKey),
      identifiers: identifiers.map(acmeIdentifier),
      preferredChain: ca.preferred_chain ?? undefined,
    },
    signal,
  );
}

/** Hands in the request; where another renewal of the same names was faster, the order as that left it. */
async function finalize(
  { client, account, attempt }: Ordering,
  order: AcmeOrder,
  request: Buffer,
): Promise<AcmeOrder> {
  try {
    return await finalizeOrder(client, account, order, request, attempt.signal);
  } catch (error) {
    if (!(error instanceof AcmeError) || error.type !== 'orderNotReady') throw error;
    const now = await fetchOrder(client, account, order.url, attempt.signal);
    if (now.status !== 'processing' && now.status !== 'valid') throw error;
    return now;
  }
}

/** The stored order as the CA has it now; undefined where it does not know it (any more), or refused it. */
async function orderUnderWay({ client, account, attempt, state }: Ordering): Promise<AcmeOrder | undefined> {
  if (state.orderUrl === null) return undefined;
  try {
    const order = await fetchOrder(client, account, state.orderUrl, attempt.signal);
    if (order.status !== 'invalid') return order;
    // What it was refused for is told by the waiting for it.
    return await waitForOrder(client, account, order.url, ['valid'], attempt.signal);
  } catch (error) {
    const isUnknown = error instanceof AcmeError && [404, 410].includes(error.status ?? 0);
    if (!isUnknown) throw error;
    return undefined;
  }
}

async function orderAnew(ordering: Ordering): Promise<AcmeOrder> {
  const { vault, attempt, issuer, ca, client, account, identifiers, state } = ordering;
  await step(vault, attempt, `ordering from ${issuer.name}`);
  const request = {
    identifiers: identifiers.map(acmeIdentifier),
    profile: wantedProfile(attempt, ca),
    replaces: await replacedId(vault, attempt, ca),
  };
  const order = await newOrder(client, account, request, attempt.signal);
  await keep(vault, attempt, {
    order_url: order.url,
    order_domains: attempt.certificate.domains,
    acme_account_id: account.id,
  });
  state.orderUrl = order.url;
  return order;
}

/** The certificate's own wish is for its issuer; a fallback may not know such a profile. */
function wantedProfile({ certificate, renewal }: Attempt, ca: AcmeIssuerRow): string | undefined {
  const own = renewal.issuer_id === certificate.issuer_id ? certificate.profile : null;
  return own ?? ca.profile ?? undefined;
}

/** What the CA calls the current version (RFC 9773 §4.1), where it made it. */
async function replacedId(
  { db }: DatabaseContext,
  { certificate }: Attempt,
  ca: AcmeIssuerRow,
): Promise<string | undefined> {
  if (certificate.current_version === null) return undefined;
  const version = await findVersion(db.reader, certificate.id, certificate.current_version);
  if (version === undefined || version.directory_url !== ca.directory_url) return undefined;
  return renewalInfoId(new X509Certificate(version.certificate_pem).raw);
}

function acmeIdentifier(value: Identifier): AcmeIdentifier {
  return { type: isAddress(value) ? 'ip' : 'dns', value };
}
