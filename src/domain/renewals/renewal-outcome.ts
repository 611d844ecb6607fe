/** How a renewal ends: each way one transaction of the renewal's end, what it means for the certificate, and its event. */
import type { RateLimit } from '../../acme/rate-limit.ts';
import { hour, minute } from '../../base/duration.ts';
import type { Writer } from '../../db/database.ts';
import type { IssuanceHoldsTable } from '../../db/schema/schema-renewals.ts';
import { findVersion } from '../../db/tables/certificate-versions.ts';
import { type CertificateRow, findCertificateById, updateCertificate } from '../../db/tables/certificates.ts';
import { storeHold } from '../../db/tables/issuance-holds.ts';
import { findAcmeIssuer, updateAcmeIssuer } from '../../db/tables/issuers.ts';
import { updateLeased, updateRenewal } from '../../db/tables/renewals.ts';
import { listEndedRenewals } from '../../db/tables/waiting-renewals.ts';
import { record, system } from '../audit/audit.ts';
import type { SealingContext, WorldContext } from '../contexts.ts';
import type { Attempt } from '../issuance/attempt.ts';
import { notifyFailed, notifyIssued } from '../notifications/certificate-notices.ts';
import { nextRenewalAt } from '../versions/renewal-plan.ts';
import { longestPause } from '../versions/renewal-policy.ts';
import { addVersion, type VersionMaterial } from '../versions/versions.ts';
import { queueRenewal } from './renewal-queue.ts';

/** However long a CA asks one order to wait, its other orders are held back no longer than this. */
export const longestIssuerPause = hour;

const ended = { lease_owner: null, lease_expires_at: null, sealed_private_key: null } as const;

/** So many renewals in a row, refused for a limit that the CA does not name, are taken for a limit on everything. */
const suspiciousRefusals = 3;

/** The first pause of the CA in that case; it doubles with each further rejection. */
const firstSuspicion = 5 * minute;

export type Failure = {
  /** For people. */
  readonly reason: string;
  /** How long the issuer or the DNS provider asked to wait. */
  readonly retryAfterMs?: number | undefined;
  /** Who sent Retry-After: the issuer, which delays it alone, or the DNS provider, which both need. */
  readonly askedBy?: 'issuer' | 'dns-provider';
  /** What the CA limits, where it refused for that. */
  readonly limit?: RateLimit | undefined;
  /** The same for other certificates; see `sharedHold`. */
  readonly hold?: Pick<IssuanceHoldsTable, 'scope' | 'subject'> | undefined;
};

/**
 * Adds the version and returns its number; undefined, having done nothing, where the lease was lost, so that nobody
 * makes a second one, or the renewal is gone with its certificate.
 */
export async function succeed(
  vault: SealingContext,
  writer: Writer,
  { renewal, owner, certificate: asked }: Attempt,
  material: VersionMaterial,
): Promise<number | undefined> {
  const now = vault.world.now();
  if (!(await updateLeased(writer, renewal.id, owner, { lease_expires_at: now }))) return undefined;
  const certificate = await findCertificateById(writer, asked.id);
  if (certificate === undefined) return undefined;
  const isAsWanted = certificate.domains === asked.domains && certificate.key_type === asked.key_type;
  const changedAt = isAsWanted ? null : certificate.changed_at;
  const version = await addVersion(vault, writer, { ...certificate, changed_at: changedAt }, material);
  await updateRenewal(writer, renewal.id, { ...ended, status: 'succeeded', finished_at: now, version });
  await updateCertificate(writer, certificate.id, { last_attempt_at: now, changed_at: changedAt });
  const resource = `certificate:${certificate.name}`;
  const detail = { version, renewal: renewal.id };
  await record(writer, { actor: system, action: 'certificate.issue', resource, detail }, now);
  await notifyIssued(vault.world, writer, certificate, version);
  return version;
}

/** Ends the renewal as failed, plans the next attempt, and stores what the failure means for others of the issuer. */
export async function fail(
  { world }: WorldContext,
  writer: Writer,
  { renewal, owner, certificate: { id } }: Attempt,
  failure: Failure,
): Promise<void> {
  const now = world.now();
  const { reason, limit } = failure;
  const limited = limit?.scope === 'certificate' ? (1 as const) : (0 as const);
  const changes = { ...ended, status: 'failed' as const, finished_at: now, error: reason, limited };
  if (!(await updateLeased(writer, renewal.id, owner, changes))) return;
  const certificate = await findCertificateById(writer, id);
  if (certificate === undefined) return;
  const planned = await replan(writer, certificate, now, {
    last_attempt_at: now,
    last_error: reason,
    failed_attempts: certificate.failed_attempts + 1,
    ...wishes(certificate, renewal.issuer_id, failure, now),
  });
  await limitOthers(writer, renewal.issuer_id, failure, now);
  const detail = { renewal: renewal.id, error: reason };
  const resource = `certificate:${certificate.name}`;
  await record(writer, { actor: system, action: 'renewal.fail', resource, detail }, now);
  await notifyFailed(world, writer, planned, reason);
}

/** Stores when each issuer may be asked again; Retry-After of one issuer does not affect the other. */
function wishes(
  { fallback_issuer_id: fallback }: CertificateRow,
  asked: number | null,
  { retryAfterMs, askedBy = 'issuer' }: Failure,
  now: number,
): Partial<Pick<CertificateRow, 'retry_after' | 'fallback_retry_after'>> {
  const until = retryAfterMs === undefined ? null : now + Math.min(retryAfterMs, longestPause);
  if (askedBy === 'dns-provider') return { retry_after: until, fallback_retry_after: until };
  const isFallback = fallback !== null && fallback === asked;
  return isFallback ? { fallback_retry_after: until } : { retry_after: until };
}

/** What the CA limits for more than this certificate: everything, the account, or a set of names or a domain. */
async function limitOthers(
  writer: Writer,
  issuerId: number | null,
  { reason, retryAfterMs, limit, hold }: Failure,
  now: number,
): Promise<void> {
  const ca = issuerId === null || limit === undefined ? undefined : await findAcmeIssuer(writer, issuerId);
  if (ca === undefined || limit === undefined || retryAfterMs === undefined) return;
  if (hold !== undefined) {
    const until = now + Math.min(retryAfterMs, longestPause);
    await storeHold(writer, { ...hold, directory_url: ca.directory_url, until, reason }, now);
    return;
  }
  const longest =
    limit.scope === 'service' || limit.scope === 'account'
      ? longestIssuerPause
      : await suspicion(writer, ca.issuer_id, now);
  if (longest === 0) return;
  const until = now + Math.min(retryAfterMs, longest, longestIssuerPause);
  await updateAcmeIssuer(writer, ca.issuer_id, { paused_until: until, pause_reason: reason });
}

/** How long to leave an issuer alone whose last renewals, of unrelated certificates, were all refused for some limit. */
async function suspicion(writer: Writer, issuerId: number, now: number): Promise<number> {
  const last = await listEndedRenewals(writer, issuerId, 10);
  const lately = last.filter(({ finished_at }) => finished_at !== null && finished_at > now - hour);
  const others = lately.findIndex(({ limited }) => limited === 0);
  const refused = others === -1 ? lately : lately.slice(0, others);
  const unrelated = new Set(refused.map(({ domains }) => roughDomain(domains))).size;
  return unrelated < suspiciousRefusals ? 0 : firstSuspicion * 2 ** (unrelated - suspiciousRefusals);
}

/** The end of the first name, by which related certificates are told; too many that seem related only delay a pause. */
function roughDomain(domains: string): string {
  const [first = ''] = JSON.parse(domains) as string[];
  return first.split('.').slice(-2).join('.');
}

/**
 * Ends the renewal because something else is wanted now, which is no failure of the certificate, and queues the next
 * one at once, unless the certificate is to be left alone.
 */
export async function supersede(
  vault: WorldContext,
  writer: Writer,
  { renewal, owner, certificate: { id } }: Attempt,
  reason: string,
): Promise<void> {
  const now = vault.world.now();
  const changes = { ...ended, status: 'failed' as const, finished_at: now, error: reason };
  if (!(await updateLeased(writer, renewal.id, owner, changes))) return;
  const certificate = await findCertificateById(writer, id);
  if (certificate === undefined) return;
  await replan(writer, certificate, now, {});
  const isWanted = certificate.disabled_at === null && certificate.issuer_id !== null;
  if (isWanted) await queueRenewal(vault, writer, system, certificate);
}

async function replan(
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
