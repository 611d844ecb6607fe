/**
 * Issues a certificate from an ACME CA: continues the order (RFC 8555 §7.4) from its current state. Its URL is stored
 * as soon as it is known, so that the same order continues after a crash or a lost connection.
 */
import type { AcmeClient } from '../../acme/acme-client.ts';
import { AcmeError } from '../../acme/acme-error.ts';
import type { AcmeOrder } from '../../acme/acme-types.ts';
import { downloadCertificate, OtherKeyError } from '../../acme/issued-certificate.ts';
import { fetchOrder, finalizeOrder, newOrder, waitForOrder } from '../../acme/orders.ts';
import { minute, second } from '../../base/duration.ts';
import type { Identifier } from '../../base/identifier.ts';
import { parseJson } from '../../base/json.ts';
import type { Secret } from '../../base/secret.ts';
import { certificateRequest } from '../../crypto/x509/certificate-request.ts';
import type { AcmeIssuerRow, IssuerRow } from '../../db/tables/issuance/issuers.ts';
import {
  ensureAccount,
  forgetAccount,
  hasOtherKey,
  type OwnAccount,
  requireAcmeIssuer,
  unusableStatus,
} from '../acme-accounts/acme-account.ts';
import type { OrderContext } from '../issuance-contexts.ts';
import type { VersionMaterial } from '../versions/versions.ts';
import { satisfyAuthorizations } from './acme-authorizations.ts';
import { acmeIdentifier, orderRequest } from './acme-order-request.ts';
import { LeaseLost, type OrderProgress } from './order-progress.ts';
import { refuseSuperseded, runUnlessSuperseded } from './superseded-check.ts';

/** Delays before retries of an order after network errors and short overloads of the CA. */
const retryDelays = [second, 2 * second, 5 * second, 15 * second, 30 * second, minute, 2 * minute];

/** How often the account may turn out to be unusable or to have another key in one attempt. */
const maxAccountErrors = 2;

/** How often another renewal of the same names may finalize a shared order in one attempt. */
const maxSharedOrders = 3;

/** A longer Retry-After ends the attempt; the next one is scheduled accordingly. */
const shortWait = 2 * minute;

/** What a version is issued for. */
export type IssuanceKey = {
  /** SPKI DER. */
  readonly publicKey: Buffer;
  /** PKCS#8 DER; undefined if the client holds it, and then there is its CSR (DER). */
  readonly privateKey: Secret | undefined;
  readonly csr: Buffer | undefined;
};

type Ordering = {
  readonly vault: OrderContext;
  readonly attempt: OrderProgress;
  readonly issuer: IssuerRow;
  readonly ca: AcmeIssuerRow;
  readonly client: AcmeClient;
  readonly account: OwnAccount;
  readonly identifiers: readonly Identifier[];
  readonly key: IssuanceKey;
  /** The current order. The row stores it too, but the claimed copy of the row is older. */
  readonly state: { orderUrl: string | null };
};

/** The step after which the CA may issue the certificate at any time. */
const finalizing = 'finalizing the order';

/**
 * Whether the CA may still issue the certificate of an attempt that failed with this error: the next attempt then
 * continues its order.
 */
export function mayStillIssue({ steps }: Pick<OrderProgress, 'steps'>, error: unknown): boolean {
  const isOver = error instanceof AcmeError && error.kind === 'problem';
  return !isOver && steps.some(({ text }) => text === finalizing);
}

/** Orders and downloads the certificate. Throws AcmeError, DnsProviderError, Superseded or LeaseLost. */
export async function issueFromAcme(
  vault: OrderContext,
  attempt: OrderProgress,
  issuer: IssuerRow,
  key: IssuanceKey,
): Promise<VersionMaterial> {
  const ca = await requireAcmeIssuer(vault, issuer);
  const client = vault.acme.at(ca);
  const identifiers = parseJson(attempt.certificate.domains);
  const parts = { vault, attempt, issuer, ca, client, identifiers, key };
  for (let tries = 0; ; tries += 1) {
    await attempt.step(`contacting ${issuer.name}: directory and account`);
    const account = await ensureAccount(vault, issuer, client, attempt.signal);
    const state = { orderUrl: await resumedOrder(attempt, account) };
    try {
      const issued = await issueUnshared({ ...parts, account, state });
      const acme = { directoryUrl: ca.directory_url, accountId: account.id };
      return { source: 'acme', ...issued, privateKey: key.privateKey, acme };
    } catch (error) {
      if (!(error instanceof AcmeError) || tries === maxAccountErrors) throw error;
      const isKeyChanged = await hasOtherKey(vault, client, account, attempt.signal);
      const unusable = isKeyChanged
        ? undefined
        : await unusableStatus(client, account, error, attempt.signal);
      if (unusable === undefined && !isKeyChanged) throw error;
      const fields = { err: error, issuer: issuer.name, account: account.id };
      vault.log.warn(fields, 'ACME account rejected by the CA; looking it up again');
      if (unusable !== undefined) await forgetAccount(vault, issuer, account.id, unusable);
    }
  }
}

/** The order of an earlier worker, if it belongs to this account and has the same names. */
async function resumedOrder(
  { read, certificate }: OrderProgress,
  account: OwnAccount,
): Promise<string | null> {
  const renewal = await read();
  if (renewal === undefined) throw new LeaseLost();
  const isOurs = renewal.acme_account_id === account.id && renewal.order_domains === certificate.domains;
  return isOurs ? renewal.order_url : null;
}

/** Creates a new order if the CA gave two renewals of the same names one order and the other one finalized it. */
async function issueUnshared(ordering: Ordering): Promise<{ leaf: Buffer; chain: Buffer[] }> {
  const { vault, attempt, issuer, state } = ordering;
  for (let shared = 0; ; shared += 1) {
    try {
      return await issueWithRetries(ordering);
    } catch (error) {
      if (!(error instanceof OtherKeyError) || shared === maxSharedOrders) throw error;
      const fields = { issuer: issuer.name, order: state.orderUrl };
      vault.log.info(fields, 'order already finalized with another key; creating a new order');
      await attempt.save({ order_url: null, order_domains: null });
      state.orderUrl = null;
    }
  }
}

/** Retries the order after network errors and short overloads of the CA. */
async function issueWithRetries(ordering: Ordering): Promise<{ leaf: Buffer; chain: Buffer[] }> {
  const { vault, attempt, issuer, state } = ordering;
  for (let failures = 0; ; failures += 1) {
    try {
      return await issueOnce(ordering);
    } catch (error) {
      const wait = retryDelays[failures];
      if (wait === undefined || state.orderUrl === null || !isTransient(error)) throw error;
      vault.log.warn({ err: error, issuer: issuer.name }, 'order interrupted; retrying');
      await attempt.step(`waiting to retry: ${error.message}`);
      await vault.world.sleep(Math.max(wait, error.retryAfterMs ?? 0), attempt.signal);
      attempt.signal.throwIfAborted();
    }
  }
}

function isTransient(error: unknown): error is AcmeError {
  if (!(error instanceof AcmeError)) return false;
  if (error.kind === 'network' || error.kind === 'timeout') return true;
  const isBusy = (error.status ?? 0) >= 500 || error.status === 429;
  return isBusy && (error.retryAfterMs ?? 0) <= shortWait;
}

async function issueOnce(ordering: Ordering): Promise<{ leaf: Buffer; chain: Buffer[] }> {
  const { vault, attempt, issuer, ca, client, account, identifiers, key } = ordering;
  const { signal } = attempt;
  let order = (await currentOrder(ordering)) ?? (await createOrder(ordering));
  if (order.status === 'pending') {
    const { url } = order;
    const current = { client, account, order };
    order = await runUnlessSuperseded(vault, attempt, async () => {
      await satisfyAuthorizations(vault, attempt, current);
      await attempt.step(`waiting for ${issuer.name} to complete the validation`);
      return waitForOrder(client, account, url, ['ready', 'processing', 'valid'], signal);
    });
  }
  if (order.status === 'ready') {
    await refuseSuperseded(vault, attempt);
    await attempt.step(finalizing);
    order = await finalize(ordering, order, await requestFor(identifiers, key));
  }
  if (order.status !== 'valid' || order.certificate === undefined) {
    await attempt.step(`waiting for ${issuer.name} to issue the certificate`);
    order = await waitForOrder(client, account, order.url, ['valid'], signal);
  }
  await attempt.step('downloading the certificate');
  return downloadCertificate(
    client,
    account,
    order.certificate ?? '',
    {
      publicKey: key.publicKey,
      identifiers: identifiers.map(acmeIdentifier),
      preferredChain: ca.preferred_chain ?? undefined,
    },
    signal,
  );
}

/** The client's CSR, or one for the key of the vault. */
async function requestFor(identifiers: readonly Identifier[], key: IssuanceKey): Promise<Buffer> {
  if (key.csr !== undefined) return key.csr;
  if (key.privateKey === undefined) throw new Error('neither a private key nor a CSR');
  return certificateRequest(identifiers, key.privateKey);
}

/** Finalizes the order. If another renewal of the same names already did, returns the order as it is. */
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

/** The stored order as the CA has it now; undefined if there is none. */
async function currentOrder({ client, account, attempt, state }: Ordering): Promise<AcmeOrder | undefined> {
  if (state.orderUrl === null) return undefined;
  try {
    const order = await fetchOrder(client, account, state.orderUrl, attempt.signal);
    if (order.status !== 'invalid') return order;
    // waitForOrder throws the error of the invalid order.
    return await waitForOrder(client, account, order.url, ['valid'], attempt.signal);
  } catch (error) {
    const isUnknown = error instanceof AcmeError && [404, 410].includes(error.status ?? 0);
    if (!isUnknown) throw error;
    return undefined;
  }
}

async function createOrder(ordering: Ordering): Promise<AcmeOrder> {
  const { vault, attempt, issuer, ca, client, account, identifiers, state } = ordering;
  await attempt.step(`creating an order at ${issuer.name}`);
  const request = await orderRequest(vault, attempt, ca, identifiers);
  const order = await newOrder(client, account, request, attempt.signal);
  await attempt.save({
    order_url: order.url,
    order_domains: attempt.certificate.domains,
    acme_account_id: account.id,
  });
  state.orderUrl = order.url;
  return order;
}
