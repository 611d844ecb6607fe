/**
 * The outcomes of a renewal. Each one updates renewal and certificate and records the audit event in one transaction.
 */
import type { RateLimit } from '../../acme/rate-limit.ts';
import { hour, minute } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { isSameRequest } from '../../crypto/x509/signing-request.ts';
import type { Writer } from '../../db/database.ts';
import type { OrderProblem } from '../../db/schema/schema-acme-server.ts';
import type { IssuanceHoldsTable } from '../../db/schema/schema-renewals.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import {
  type CertificateRow,
  findCertificateById,
  updateCertificate,
} from '../../db/tables/certificates/certificates.ts';
import { storeHold } from '../../db/tables/issuance/issuance-holds.ts';
import { findAcmeIssuer, updateAcmeIssuer } from '../../db/tables/issuance/issuers.ts';
import { findOpenRenewal, updateLeased, updateRenewal } from '../../db/tables/renewals/renewals.ts';
import { listEndedRenewals } from '../../db/tables/renewals/waiting-renewals.ts';
import { record, system } from '../audit/audit.ts';
import type { SealingContext, WorldContext } from '../contexts.ts';
import { notifyFailed, notifyIssued } from '../notifications/certificate-notices.ts';
import { nextRenewalAt } from '../schedule/renewal-plan.ts';
import { maxPause } from '../schedule/renewal-policy.ts';
import { addVersion, type VersionMaterial } from '../versions/versions.ts';
import type { Attempt } from './attempt.ts';
import {
  actorOfRenewal,
  completeOrders,
  failOrders,
  isOrderedByClient,
  problemForClient,
  problemOfChange,
} from './client-outcome.ts';
import { queueRenewal } from './renewal-queue.ts';

/** The part of an attempt that its end needs. */
type EndedAttempt = Pick<Attempt, 'renewal' | 'owner' | 'certificate'>;

/** The longest pause of an issuer, even if the Retry-After of one order is longer. */
export const maxIssuerPause = hour;

const ended = { lease_owner: null, lease_expires_at: null, sealed_private_key: null } as const;

/** After this many rate limit errors in a row whose scope is unknown, the limit is assumed to cover the whole CA. */
const refusalsBeforePause = 3;

/** The first pause of the CA in that case; it doubles with each further error. */
const firstAssumedPause = 5 * minute;

export type Failure = {
  /** The error message, shown to administrators. */
  readonly reason: string;
  /** The problem for an ACME client that ordered it; see `problemForClient`. */
  readonly problem?: OrderProblem;
  /** Whether the next renewal continues the order with its key. */
  readonly keepsOrder?: boolean | undefined;
  /** How long the issuer or the DNS provider asked to wait. */
  readonly retryAfterMs?: number | undefined;
  /** Who sent Retry-After: the issuer, which delays only itself, or the DNS provider, which both issuers need. */
  readonly askedBy?: 'issuer' | 'dns-provider';
  /** The rate limit that the CA reported. */
  readonly limit?: RateLimit | undefined;
  /** The hold that the rate limit puts on other certificates; see `sharedHold`. */
  readonly hold?: Pick<IssuanceHoldsTable, 'scope' | 'subject'> | undefined;
};

/**
 * Adds the version and returns its number. Does nothing and returns undefined if the lease was lost, because another
 * worker may add the version, or if the certificate was deleted.
 */
export async function succeed(
  vault: SealingContext,
  writer: Writer,
  { renewal, owner, certificate: ordered }: EndedAttempt,
  material: VersionMaterial,
): Promise<number | undefined> {
  const now = vault.world.now();
  if (!(await updateLeased(writer, renewal.id, owner, { lease_expires_at: now }))) return undefined;
  const certificate = await findCertificateById(writer, ordered.id);
  if (certificate === undefined) return undefined;
  const isUnchanged =
    certificate.domains === ordered.domains &&
    certificate.key_type === ordered.key_type &&
    isSameRequest(certificate.csr, ordered.csr);
  const changedAt = isUnchanged ? null : certificate.changed_at;
  const version = await addVersion(vault, writer, { ...certificate, changed_at: changedAt }, material);
  await updateRenewal(writer, renewal.id, { ...ended, status: 'succeeded', finished_at: now, version });
  await updateCertificate(writer, certificate.id, { last_attempt_at: now, changed_at: changedAt });
  const resource = `certificate:${certificate.name}`;
  const detail = { version, renewal: renewal.id };
  const actor = actorOfRenewal(certificate, renewal);
  record(writer, { actor, action: 'certificate.issue', resource, detail }, now);
  await completeOrders(writer, renewal.id, { certificateId: certificate.id, version }, now);
  await notifyIssued(vault.world, writer, certificate, version);
  return version;
}

/** Marks the renewal as failed, schedules the next attempt, and stores rate limits that affect other certificates. */
export async function fail(
  { world }: WorldContext,
  writer: Writer,
  { renewal, owner, certificate: { id } }: EndedAttempt,
  failure: Failure,
): Promise<void> {
  const now = world.now();
  const { reason, limit } = failure;
  const limited = limit?.scope === 'certificate' ? (1 as const) : (0 as const);
  const { sealed_private_key: _, ...withKey } = ended;
  const changes = {
    ...(failure.keepsOrder === true ? withKey : { ...ended, order_url: null }),
    ...{ status: 'failed' as const, finished_at: now, error: reason, limited },
  };
  if (!(await updateLeased(writer, renewal.id, owner, changes))) return;
  const certificate = await findCertificateById(writer, id);
  if (certificate === undefined) return;
  const isByClient = isOrderedByClient(certificate);
  await failOrders(writer, renewal.id, failure.problem ?? problemForClient(undefined, renewal.id), now);
  const scheduled = await reschedule(writer, certificate, now, {
    last_attempt_at: now,
    // The client gets the error and decides; its certificate is unaffected.
    ...(!isByClient && { last_error: reason }),
    failed_attempts: certificate.failed_attempts + 1,
    ...retryTimes(certificate, renewal.issuer_id, failure, now),
  });
  await limitOthers(writer, renewal.issuer_id, failure, now);
  const detail = { renewal: renewal.id, error: reason };
  const resource = `certificate:${certificate.name}`;
  const actor = actorOfRenewal(certificate, renewal);
  record(writer, { actor, action: 'renewal.fail', resource, detail }, now);
  if (!isByClient) await notifyFailed(world, writer, scheduled, reason);
}

/** When each issuer may be contacted again; Retry-After of one issuer does not affect the other. */
function retryTimes(
  { fallback_issuer_id: fallback }: CertificateRow,
  asked: number | null,
  { retryAfterMs, askedBy = 'issuer' }: Failure,
  now: number,
): Partial<Pick<CertificateRow, 'retry_after' | 'fallback_retry_after'>> {
  const until = retryAfterMs === undefined ? null : now + Math.min(retryAfterMs, maxPause);
  if (askedBy === 'dns-provider') return { retry_after: until, fallback_retry_after: until };
  const isFallback = fallback !== null && fallback === asked;
  return isFallback ? { fallback_retry_after: until } : { retry_after: until };
}

/** Stores a rate limit that covers more than this certificate: the CA, the account, a set of names or a domain. */
async function limitOthers(
  writer: Writer,
  issuerId: number | null,
  { reason, retryAfterMs, limit, hold }: Failure,
  now: number,
): Promise<void> {
  const ca = issuerId === null || limit === undefined ? undefined : await findAcmeIssuer(writer, issuerId);
  if (ca === undefined || limit === undefined || retryAfterMs === undefined) return;
  if (hold !== undefined) {
    const until = now + Math.min(retryAfterMs, maxPause);
    await storeHold(writer, { ...hold, directory_url: ca.directory_url, until, reason }, now);
    return;
  }
  const longest =
    limit.scope === 'service' || limit.scope === 'account'
      ? maxIssuerPause
      : await assumedPause(writer, ca.issuer_id, now);
  if (longest === 0) return;
  const until = now + Math.min(retryAfterMs, longest, maxIssuerPause);
  await updateAcmeIssuer(writer, ca.issuer_id, { paused_until: until, pause_reason: reason });
}

/**
 * How long to pause an issuer whose last renewals, of unrelated certificates, all hit a rate limit; 0 for no pause. A
 * certificate that is refused again only shows that its own limit still applies: a few that are retried hourly would
 * pause the CA for all others.
 */
async function assumedPause(writer: Writer, issuerId: number, now: number): Promise<number> {
  const last = await listEndedRenewals(writer, issuerId, 20);
  const telling = last.filter(({ limited, limited_before }) => limited === 0 || limited_before !== 1);
  const lately = telling
    .slice(0, 10)
    .filter(({ finished_at }) => finished_at !== null && finished_at > now - hour);
  const others = lately.findIndex(({ limited }) => limited === 0);
  const refused = others === -1 ? lately : lately.slice(0, others);
  const unrelated = new Set(refused.map(({ domains }) => roughDomain(domains))).size;
  return unrelated < refusalsBeforePause ? 0 : firstAssumedPause * 2 ** (unrelated - refusalsBeforePause);
}

/** The last two labels of the first name: a rough test for related certificates. An error only delays the pause. */
function roughDomain(domains: CertificateRow['domains']): string {
  const [first = ''] = parseJson(domains);
  return first.split('.').slice(-2).join('.');
}

/**
 * Ends a renewal whose certificate or issuer was changed meanwhile. This does not count as a failure of the
 * certificate; the next renewal is queued immediately unless the certificate is disabled or has no issuer.
 */
export async function supersede(
  vault: WorldContext,
  writer: Writer,
  { renewal, owner, certificate: { id } }: EndedAttempt,
  reason: string,
): Promise<void> {
  const now = vault.world.now();
  const changes = { ...ended, status: 'failed' as const, finished_at: now, error: reason };
  if (!(await updateLeased(writer, renewal.id, owner, changes))) return;
  const certificate = await findCertificateById(writer, id);
  if (certificate === undefined) return;
  await reschedule(writer, certificate, now, {});
  await failOrders(writer, renewal.id, problemOfChange(reason), now);
  const isWanted =
    certificate.disabled_at === null && certificate.issuer_id !== null && !isOrderedByClient(certificate);
  if (isWanted) await queueRenewal(vault, writer, system, certificate);
}

/**
 * Ends the running renewal of a certificate immediately: its worker notices that the lease is lost, and later changes
 * get a new renewal.
 */
export async function supersedeRunning(
  writer: Writer,
  certificateId: number,
  reason: string,
  now: number,
): Promise<void> {
  const open = await findOpenRenewal(writer, certificateId);
  if (open?.status !== 'running') return;
  await updateRenewal(writer, open.id, { ...ended, status: 'failed', finished_at: now, error: reason });
}

async function reschedule(
  writer: Writer,
  certificate: CertificateRow,
  now: number,
  changes: Partial<CertificateRow>,
): Promise<CertificateRow> {
  const changed = { ...certificate, ...changes };
  const { current_version: number } = certificate;
  const current = number === null ? undefined : await findVersion(writer, certificate.id, number);
  const next = nextRenewalAt(changed, current, now);
  await updateCertificate(writer, certificate.id, { ...changes, next_renewal_at: next });
  return { ...changed, next_renewal_at: next };
}
