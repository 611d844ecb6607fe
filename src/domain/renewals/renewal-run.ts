/**
 * Runs a renewal in steps that each survive a crash: the private key is generated and stored before the order, and
 * version, outcome and audit event are one transaction.
 */
import { AcmeError } from '../../acme/acme-error.ts';
import { rateLimitOf } from '../../acme/rate-limit.ts';
import { hour } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { StorageError } from '../../base/storage-error.ts';
import { listOrdersOf } from '../../db/tables/acme-server/upstream-orders.ts';
import { findOwner } from '../../db/tables/certificates/certificate-owners.ts';
import { findCertificateById } from '../../db/tables/certificates/certificates.ts';
import { listRenewalChallenges } from '../../db/tables/issuance/acme-challenges.ts';
import { findIssuerById } from '../../db/tables/issuance/issuers.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import type { LogContext, WorldContext } from '../contexts.ts';
import type { Meter } from '../health/meter.ts';
import type { ChallengeContext, OrderContext } from '../issuance-contexts.ts';
import type { OwnersContext } from '../nodes/lease-owners.ts';
import { issueFromAcme, mayStillIssue } from '../orders/acme-order.ts';
import { beginRemoval } from '../orders/challenge-removal.ts';
import { sharedHold } from '../orders/issuance-limits.ts';
import { LeaseLost, type StopReason, Superseded } from '../orders/order-progress.ts';
import { issueFromPrivateCa } from '../private-ca/leaf-issuance.ts';
import { leafSettings } from '../private-ca/leaf-settings.ts';
import type { VersionMaterial } from '../versions/versions.ts';
import { type Attempt, attemptTimeout, type ClaimedRenewal, withAttempt } from './attempt.ts';
import { isOrderedByClient, problemForClient } from './client-outcome.ts';
import { releaseRenewal } from './renewal-claim.ts';
import { keyToCertify, withEarlierOrder } from './renewal-key.ts';
import { type Failure, fail, succeed, supersede } from './renewal-outcome.ts';
import type { QueueContext } from './renewal-queue.ts';

/** Runs a renewal and records the outcome. */
export type RenewalContext = OrderContext & QueueContext & OwnersContext & { readonly meter: Meter };

/** A renewal whose worker died this often fails, because it may be what kills the workers. */
const maxClaims = 5;

/**
 * Runs a claimed renewal from where an earlier worker left it. An error ends the renewal as failed, with the reason.
 * When `signal` is aborted, the renewal returns to the queue with its progress. Throws only if the database cannot be
 * read or written; the renewal is resumed when its lease has expired.
 */
export async function runRenewal(
  vault: RenewalContext,
  claimed: ClaimedRenewal,
  signal: AbortSignal,
): Promise<void> {
  const certificate = await findCertificateById(vault.db.reader, claimed.renewal.certificate_id);
  if (certificate === undefined) return;
  await withAttempt(vault, { ...claimed, certificate }, signal, async (attempt) => {
    try {
      const material = await issue(vault, attempt);
      const version = await vault.db.write((writer) => succeed(vault, writer, attempt, material));
      if (version === undefined) throw new LeaseLost();
      await removeUnusedChallenges(vault, attempt);
      vault.meter.renewed('succeeded', sinceStart(vault, attempt));
      await countOrders(vault, attempt, 'issued');
      vault.log.info({ ...logged(attempt), version }, 'certificate issued');
    } catch (error) {
      await end(vault, attempt, error);
    }
  });
}

async function end(vault: RenewalContext, attempt: Attempt, error: unknown): Promise<void> {
  const stopped = attempt.signal.aborted ? (attempt.signal.reason as StopReason) : undefined;
  if (error instanceof LeaseLost || stopped === 'lease lost') {
    vault.log.warn(logged(attempt), 'lease lost to another worker');
    return;
  }
  if (stopped === 'shutdown') {
    await releaseRenewal(vault, attempt);
    return;
  }
  if (error instanceof Superseded) {
    vault.log.info({ ...logged(attempt), reason: error.message }, 'renewal canceled');
    await vault.db.write((writer) => supersede(vault, writer, attempt, error.message));
    await removeUnusedChallenges(vault, attempt);
    vault.renewalQueued.notify();
    return;
  }
  // Its progress is stored, and the database may recover. Claims are counted, so retries are bounded.
  if (error instanceof StorageError && stopped === undefined) throw error;
  vault.log.error({ err: error, ...logged(attempt) }, 'renewal failed');
  const failure = await failureOf(vault, attempt, error, stopped);
  await vault.db.write((writer) => fail(vault, writer, attempt, failure));
  vault.meter.renewed('failed', sinceStart(vault, attempt));
  await countOrders(vault, attempt, 'failed');
  await removeUnusedChallenges(vault, attempt);
}

/** The failure as the scheduler needs it: reason, Retry-After and rate limits. */
async function failureOf(
  vault: LogContext,
  { certificate, renewal, steps }: Attempt,
  error: unknown,
  stopped: StopReason | undefined,
): Promise<Failure> {
  const keepsOrder = mayStillIssue({ steps }, error);
  const told = reasonOf(error, stopped);
  const isCut = keepsOrder && stopped === 'deadline';
  const reason = isCut ? `${told.replace(/\.$/, '')}; the next attempt continues the order` : told;
  const problem = problemForClient(error, renewal.id);
  if (error instanceof DnsProviderError) {
    return { reason, problem, retryAfterMs: error.retryAfterMs, askedBy: 'dns-provider' };
  }
  if (!(error instanceof AcmeError)) return { reason, problem, keepsOrder };
  const limit = rateLimitOf(error);
  const hold = limit && (await sharedHold(limit, parseJson(certificate.domains)));
  if (hold !== undefined)
    vault.log.warn({ certificate: certificate.name, ...hold }, 'rate limit of the CA reached');
  return { reason, problem, keepsOrder, retryAfterMs: error.retryAfterMs, limit, hold };
}

/** Milliseconds since the first process started the renewal. */
function sinceStart({ world }: WorldContext, { renewal }: Attempt): number {
  return world.now() - (renewal.started_at ?? world.now());
}

/** Counts the orders of an ACME client that the renewal ended. */
async function countOrders(
  { db, meter }: RenewalContext,
  { certificate, renewal }: Attempt,
  result: 'issued' | 'failed',
): Promise<void> {
  if (!isOrderedByClient(certificate)) return;
  for (const { client, issuer, created_at, finished_at } of await listOrdersOf(db.reader, renewal.id)) {
    const ms = result === 'issued' ? (finished_at ?? created_at) - created_at : undefined;
    meter.ordered(result, { client, issuer }, ms);
  }
}

/** Removes challenges that an earlier worker presented and this one did not need. */
async function removeUnusedChallenges(vault: ChallengeContext, { renewal }: Attempt): Promise<void> {
  beginRemoval(vault, await listRenewalChallenges(vault.db.reader, renewal.id));
}

async function issue(vault: OrderContext, attempt: Attempt): Promise<VersionMaterial> {
  const { certificate, renewal } = attempt;
  if (renewal.claims > maxClaims) {
    throw new Problem('unavailable', {
      detail: `Renewal abandoned: its worker stopped unexpectedly ${maxClaims} times.`,
    });
  }
  if (certificate.disabled_at !== null) throw new Superseded('the certificate is disabled');
  const owner = await findOwner(vault.db.reader, certificate.acme_client_id ?? 0);
  if (owner !== undefined && owner.revoked_at !== null) throw new Superseded('its ACME client was revoked');
  const issuer = await findIssuerById(vault.db.reader, renewal.issuer_id ?? certificate.issuer_id ?? 0);
  if (issuer === undefined) throw new Superseded('the issuer was removed');
  const key = await keyToCertify(vault, await withEarlierOrder(vault, attempt));
  if (issuer.type === 'acme') return issueFromAcme(vault, attempt, issuer, key);
  const issued = await issueFromPrivateCa(vault, issuer, {
    identifiers: parseJson(certificate.domains),
    publicKey: key.publicKey,
    lifetime: certificate.lifetime ?? undefined,
    // A profile belongs to one issuer.
    profile: (issuer.id === certificate.issuer_id ? certificate.profile : null) ?? undefined,
    ...leafSettings(certificate),
  });
  return { source: 'local-ca', ...issued, privateKey: key.privateKey };
}

/** The error message for administrators. Storage errors name paths and appear only in the log. */
function reasonOf(error: unknown, stopped: StopReason | undefined): string {
  if (stopped === 'deadline') return `Timed out after ${attemptTimeout / hour} h: ${textOf(error)}`;
  return textOf(error);
}

function textOf(error: unknown): string {
  const isForPeople =
    error instanceof Problem || (error instanceof OperatorError && !(error instanceof StorageError));
  if (!isForPeople) return 'Internal error; see the log of the vault.';
  const { message, hint } = error;
  return hint === undefined ? message : `${message.replace(/\.$/, '')}. ${hint}`;
}

function logged({ certificate, renewal }: Attempt): Readonly<Record<string, unknown>> {
  return { certificate: certificate.name, renewal: renewal.id };
}
