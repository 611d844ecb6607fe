/**
 * How a renewal is carried out, in steps that each survive a crash: it is claimed under a lease, its private key is
 * made and stored before the issuer is asked for anything, and version, success and audit event are one transaction.
 */
import { createPrivateKey } from 'node:crypto';
import { minute, second } from '../base/duration.ts';
import type { Identifier } from '../base/identifier.ts';
import { defaultKeyType, isKeyType } from '../base/key-type.ts';
import { OperatorError } from '../base/operator-error.ts';
import { Problem } from '../base/problem.ts';
import { Secret } from '../base/secret.ts';
import { generatePrivateKey } from '../crypto/key-pair.ts';
import { findVersion } from '../db/certificate-versions.ts';
import { type CertificateRow, findCertificateById, updateCertificate } from '../db/certificates.ts';
import type { Writer } from '../db/database.ts';
import { findClaimableRenewal, type RenewalRow, updateLeased, updateRenewal } from '../db/renewals.ts';
import { StorageError } from '../db/storage-error.ts';
import { record, system } from './audit.ts';
import { issueFromLocalCa } from './local-ca.ts';
import { openFor, renewalKeyOwner, sealFor } from './private-keys.ts';
import { renewAt } from './renewal-policy.ts';
import type { Vault } from './vault.ts';
import { addVersion, openVersionKey, type VersionMaterial } from './versions.ts';

/** A worker that has not been heard of for this long is dead, and its renewal goes to the next. */
export const leaseDuration = minute;

/** A renewal whose worker died this often is not tried again: it may be what kills them. */
const mostClaims = 5;

export type ClaimedRenewal = { readonly renewal: RenewalRow; readonly owner: string };

/**
 * Claims the oldest renewal that nobody works on, for a lease; undefined where there is none. Each claim has an owner of
 * its own, so that a lease that ran out (the clock may jump) is lost even to the same worker's next claim.
 */
export async function claimRenewal(vault: Vault, worker: string): Promise<ClaimedRenewal | undefined> {
  const { db, world } = vault;
  if ((await findClaimableRenewal(db.reader, world.now())) === undefined) return undefined;
  return db.write(async (writer) => {
    const now = world.now();
    const found = await findClaimableRenewal(writer, now);
    if (found === undefined) return undefined;
    const owner = `${worker}/${found.id}/${found.claims + 1}`;
    const changes = {
      status: 'running' as const,
      claims: found.claims + 1,
      started_at: found.started_at ?? now,
      lease_owner: owner,
      lease_expires_at: now + leaseDuration,
    };
    await updateRenewal(writer, found.id, changes);
    return { renewal: { ...found, ...changes }, owner };
  });
}

/** Keeps the lease fresh until `signal` is aborted or the lease is lost. */
export async function keepLease(
  { db, world }: Vault,
  { renewal, owner }: ClaimedRenewal,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await world.sleep(20 * second, signal);
    if (signal.aborted) return;
    const changes = { lease_expires_at: world.now() + leaseDuration };
    if (!(await db.write((writer) => updateLeased(writer, renewal.id, owner, changes)))) return;
  }
}

/**
 * Carries a claimed renewal out, from wherever an earlier worker left it. What the issuer refuses or what fails ends
 * the renewal as failed, with the reason; only a database that cannot be written makes it throw.
 */
export async function runRenewal(vault: Vault, claimed: ClaimedRenewal): Promise<void> {
  const certificate = await findCertificateById(vault.db.reader, claimed.renewal.certificate_id);
  if (certificate === undefined) return;
  try {
    if (claimed.renewal.claims > mostClaims) {
      throw new Problem('unavailable', { detail: `Given up: interrupted ${mostClaims} times.` });
    }
    const privateKey = await renewalKey(vault, claimed, certificate);
    const issued = await issueFromLocalCa(vault, {
      identifiers: JSON.parse(certificate.domains) as Identifier[],
      privateKey,
      lifetime: certificate.lifetime ?? undefined,
    });
    const material = { source: 'local-ca' as const, ...issued, privateKey };
    await vault.db.write((writer) => succeed(vault, writer, claimed, certificate, material));
  } catch (error) {
    vault.log.error(
      { err: error, certificate: certificate.name, renewal: claimed.renewal.id },
      'renewal failed',
    );
    await vault.db.write((writer) => fail(vault, writer, claimed, certificate, reasonOf(error)));
  }
}

/** What people may read about a failure; the storage's own troubles name paths and are for the log alone. */
function reasonOf(error: unknown): string {
  const isForPeople =
    error instanceof Problem || (error instanceof OperatorError && !(error instanceof StorageError));
  return isForPeople ? error.message : 'The vault failed; its log has the cause.';
}

/** The key of the version to come: the stored one after a crash, the current one where it is reused, else a new one. */
async function renewalKey(
  vault: Vault,
  { renewal, owner }: ClaimedRenewal,
  certificate: CertificateRow,
): Promise<Secret> {
  const place = renewalKeyOwner(renewal.id);
  if (renewal.sealed_private_key !== null) return openFor(vault, place, renewal.sealed_private_key);
  const key =
    (certificate.reuse_key === 1 ? await currentKey(vault, certificate) : undefined) ??
    (await generatePrivateKey(isKeyType(certificate.key_type) ? certificate.key_type : defaultKeyType));
  const sealed = sealFor(vault, place, key);
  const kept = await vault.db.write((writer) =>
    updateLeased(writer, renewal.id, owner, { sealed_private_key: sealed }),
  );
  if (!kept) throw new Error('the lease of the renewal was lost');
  return key;
}

async function currentKey(vault: Vault, certificate: CertificateRow): Promise<Secret | undefined> {
  if (certificate.current_version === null) return undefined;
  const version = await findVersion(vault.db.reader, certificate.id, certificate.current_version);
  if (version === undefined) return undefined;
  const key = createPrivateKey(openVersionKey(vault, version).expose());
  return new Secret(key.export({ type: 'pkcs8', format: 'der' }));
}

async function succeed(
  vault: Vault,
  writer: Writer,
  { renewal, owner }: ClaimedRenewal,
  certificate: CertificateRow,
  material: VersionMaterial,
): Promise<void> {
  const now = vault.world.now();
  // Whoever lost the lease must not make a second version; a certificate that was deleted took the renewal with it.
  if (!(await updateLeased(writer, renewal.id, owner, { lease_expires_at: now }))) return;
  const version = await addVersion(vault, writer, { id: certificate.id, renewable: true }, material);
  await updateRenewal(writer, renewal.id, {
    status: 'succeeded',
    finished_at: now,
    version,
    lease_owner: null,
    lease_expires_at: null,
    sealed_private_key: null,
  });
  await updateCertificate(writer, certificate.id, { last_attempt_at: now });
  const resource = `certificate:${certificate.name}`;
  const detail = { version, renewal: renewal.id };
  await record(writer, { actor: system, action: 'certificate.issue', resource, detail }, now);
}

async function fail(
  { world }: Vault,
  writer: Writer,
  { renewal, owner }: ClaimedRenewal,
  certificate: CertificateRow,
  reason: string,
): Promise<void> {
  const now = world.now();
  const changes = {
    status: 'failed' as const,
    finished_at: now,
    error: reason,
    lease_owner: null,
    lease_expires_at: null,
    sealed_private_key: null,
  };
  if (!(await updateLeased(writer, renewal.id, owner, changes))) return;
  const failedAttempts = certificate.failed_attempts + 1;
  const current =
    certificate.current_version === null
      ? undefined
      : await findVersion(writer, certificate.id, certificate.current_version);
  await updateCertificate(writer, certificate.id, {
    last_attempt_at: now,
    last_error: reason,
    failed_attempts: failedAttempts,
    ...(current !== undefined && {
      next_renewal_at: renewAt({
        notBefore: current.not_before,
        notAfter: current.not_after,
        seed: current.serial,
        failedAttempts,
        lastAttemptAt: now,
      }),
    }),
  });
  const detail = { renewal: renewal.id, error: reason };
  await record(
    writer,
    { actor: system, action: 'renewal.fail', resource: `certificate:${certificate.name}`, detail },
    now,
  );
}
