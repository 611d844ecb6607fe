/** How a renewal ends: each way one transaction of the renewal's end, what it means for the certificate, and its event. */
import { hour } from '../base/duration.ts';
import { findVersion } from '../db/certificate-versions.ts';
import { type CertificateRow, findCertificateById, updateCertificate } from '../db/certificates.ts';
import type { Writer } from '../db/database.ts';
import { updateAcmeIssuer } from '../db/issuers.ts';
import { updateLeased, updateRenewal } from '../db/renewals.ts';
import type { Attempt } from './attempt.ts';
import { record, system } from './audit.ts';
import { tellFailed, tellIssued } from './certificate-notices.ts';
import { nextRenewalAt } from './renewal-plan.ts';
import { queueRenewal } from './renewal-queue.ts';
import type { Vault } from './vault.ts';
import { addVersion, type VersionMaterial } from './versions.ts';

/** However long a CA asks one order to wait, its other orders are held back no longer than this. */
export const longestIssuerPause = hour;

const ended = { lease_owner: null, lease_expires_at: null, sealed_private_key: null } as const;

export type Failure = {
  /** For people. */
  readonly reason: string;
  /** What the CA or the DNS provider asked to wait. */
  readonly retryAfterMs: number | undefined;
  /** The CA limits everything that is asked of it, not this certificate alone. */
  readonly pausesIssuer: boolean;
};

/**
 * Adds the version and returns its number; undefined, having done nothing, where the lease was lost, so that nobody
 * makes a second one, or the renewal is gone with its certificate.
 */
export async function succeed(
  vault: Vault,
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
  await tellIssued(vault.world, writer, certificate, version);
  return version;
}

/** Ends the renewal as failed and plans the next attempt. */
export async function fail(
  { world }: Vault,
  writer: Writer,
  { renewal, owner, certificate: { id } }: Attempt,
  { reason, retryAfterMs, pausesIssuer }: Failure,
): Promise<void> {
  const now = world.now();
  const changes = { ...ended, status: 'failed' as const, finished_at: now, error: reason };
  if (!(await updateLeased(writer, renewal.id, owner, changes))) return;
  const certificate = await findCertificateById(writer, id);
  if (certificate === undefined) return;
  const planned = await replan(writer, certificate, now, {
    last_attempt_at: now,
    last_error: reason,
    failed_attempts: certificate.failed_attempts + 1,
    retry_after: retryAfterMs === undefined ? null : now + retryAfterMs,
  });
  if (pausesIssuer && retryAfterMs !== undefined && renewal.issuer_id !== null) {
    const until = now + Math.min(retryAfterMs, longestIssuerPause);
    await updateAcmeIssuer(writer, renewal.issuer_id, { paused_until: until, pause_reason: reason });
  }
  const detail = { renewal: renewal.id, error: reason };
  const resource = `certificate:${certificate.name}`;
  await record(writer, { actor: system, action: 'renewal.fail', resource, detail }, now);
  await tellFailed(world, writer, planned, reason);
}

/**
 * Ends the renewal because something else is wanted now, which is no failure of the certificate, and queues the next
 * one at once, unless the certificate is to be left alone.
 */
export async function supersede(
  vault: Vault,
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
