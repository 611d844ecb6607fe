/**
 * How a renewal is carried out, in steps that each survive a crash: its private key is made and stored before the issuer
 * is asked for anything, and version, success and audit event are one transaction.
 */
import { AcmeError } from '../../acme/acme-error.ts';
import { rateLimitOf } from '../../acme/rate-limit.ts';
import { withDeadline } from '../../base/deadline.ts';
import { hour } from '../../base/duration.ts';
import type { Identifier } from '../../base/identifier.ts';
import { defaultKeyType, isKeyType } from '../../base/key-type.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { StorageError } from '../../base/storage-error.ts';
import { generatePrivateKey, keyObject, keyTypeOf, publicKeyOf } from '../../crypto/key-pair.ts';
import { listRenewalChallenges } from '../../db/tables/acme-challenges.ts';
import { findVersion } from '../../db/tables/certificate-versions.ts';
import { type CertificateRow, findCertificateById } from '../../db/tables/certificates.ts';
import { findIssuerById } from '../../db/tables/issuers.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import type {
  DatabaseContext,
  KeyringContext,
  LogContext,
  SecretsContext,
  WorldContext,
} from '../contexts.ts';
import type { Meter } from '../health/meter.ts';
import { issueFromAcme } from '../issuance/acme-order.ts';
import {
  type Attempt,
  type ClaimedRenewal,
  keep,
  LeaseLost,
  type StopReason,
  Superseded,
  stepsOf,
} from '../issuance/attempt.ts';
import { beginRemoval } from '../issuance/challenge-removal.ts';
import type { ChallengeContext, OrderContext } from '../issuance/issuance-contexts.ts';
import { sharedHold } from '../issuance/issuance-limits.ts';
import { issueFromLocalCa } from '../issuance/local-ca.ts';
import { openFor, renewalKeyOwner, sealFor } from '../sealed-secrets.ts';
import { type VersionMaterial, versionPrivateKey } from '../versions/versions.ts';
import { releaseRenewal } from './renewal-claim.ts';
import { type Failure, fail, succeed, supersede } from './renewal-outcome.ts';
import type { QueueContext } from './renewal-queue.ts';

/** Carries a renewal out and notes what came of it. */
export type RenewalContext = OrderContext & QueueContext & { readonly meter: Meter };

/** A renewal whose worker died this often is not tried again: it may be what kills them. */
const mostClaims = 5;

/** However slow the CA: after this an attempt has failed. Presenting records, and waiting for them, does not count. */
const attemptPatience = hour;

/**
 * Carries a claimed renewal out, from wherever an earlier worker left it. What the issuer refuses or what fails ends the
 * renewal as failed, with the reason; when `signal` is aborted it is given back to the queue as it stands. Throws only
 * where the database cannot be written.
 */
export async function runRenewal(
  vault: RenewalContext,
  claimed: ClaimedRenewal,
  signal: AbortSignal,
): Promise<void> {
  const certificate = await findCertificateById(vault.db.reader, claimed.renewal.certificate_id);
  if (certificate === undefined) return;
  await withDeadline(vault.world, attemptPatience, signal, async (deadline) => {
    const reason = () => (deadline.ended() === 'timeout' ? 'deadline' : (signal.reason as StopReason));
    const stop = new AbortController();
    deadline.signal.addEventListener('abort', () => stop.abort(reason()), { once: true });
    if (deadline.signal.aborted) stop.abort(reason());
    const steps = [...stepsOf(claimed.renewal)];
    const { extend } = deadline;
    const loseLease = () => stop.abort('lease lost' satisfies StopReason);
    const attempt = { ...claimed, certificate, signal: stop.signal, extend, loseLease, steps };
    try {
      const material = await issue(vault, attempt);
      const version = await vault.db.write((writer) => succeed(vault, writer, attempt, material));
      if (version === undefined) throw new LeaseLost();
      await removeRest(vault, attempt);
      vault.meter.renewed('succeeded', sinceStart(vault, attempt));
      vault.log.info({ ...logged(attempt), version }, 'certificate issued');
    } catch (error) {
      await end(vault, attempt, error);
    }
  });
}

async function end(vault: RenewalContext, attempt: Attempt, error: unknown): Promise<void> {
  const stopped = attempt.signal.aborted ? (attempt.signal.reason as StopReason) : undefined;
  if (error instanceof LeaseLost || stopped === 'lease lost') {
    vault.log.warn(logged(attempt), 'another worker has this renewal now');
    return;
  }
  if (stopped === 'shutdown') {
    await releaseRenewal(vault, attempt);
    return;
  }
  if (error instanceof Superseded) {
    vault.log.info({ ...logged(attempt), reason: error.message }, 'renewal ended early');
    await vault.db.write((writer) => supersede(vault, writer, attempt, error.message));
    await removeRest(vault, attempt);
    vault.renewalQueued.notify();
    return;
  }
  vault.log.error({ err: error, ...logged(attempt) }, 'renewal failed');
  const failure = await failureOf(vault, attempt, error, stopped);
  await vault.db.write((writer) => fail(vault, writer, attempt, failure));
  vault.meter.renewed('failed', sinceStart(vault, attempt));
  await removeRest(vault, attempt);
}

/** What the failure says about the certificate, the issuer and others that it limits. */
async function failureOf(
  vault: LogContext,
  { certificate }: Attempt,
  error: unknown,
  stopped: StopReason | undefined,
): Promise<Failure> {
  const reason = reasonOf(error, stopped);
  if (error instanceof DnsProviderError) {
    return { reason, retryAfterMs: error.retryAfterMs, askedBy: 'dns-provider' };
  }
  if (!(error instanceof AcmeError)) return { reason };
  const limit = rateLimitOf(error);
  const hold = limit && (await sharedHold(limit, JSON.parse(certificate.domains) as Identifier[]));
  if (hold !== undefined)
    vault.log.warn({ certificate: certificate.name, ...hold }, 'limit of the CA reached');
  return { reason, retryAfterMs: error.retryAfterMs, limit, hold };
}

/** Milliseconds since it was first taken up, by whatever process. */
function sinceStart({ world }: WorldContext, { renewal }: Attempt): number {
  return world.now() - (renewal.started_at ?? world.now());
}

/** Challenges that an earlier worker presented and this one no longer needs. */
async function removeRest(vault: ChallengeContext, { renewal }: Attempt): Promise<void> {
  beginRemoval(vault, await listRenewalChallenges(vault.db.reader, renewal.id));
}

async function issue(vault: OrderContext, attempt: Attempt): Promise<VersionMaterial> {
  const { certificate, renewal } = attempt;
  if (renewal.claims > mostClaims) {
    throw new Problem('unavailable', { detail: `Given up: interrupted ${mostClaims} times.` });
  }
  if (certificate.disabled_at !== null) throw new Superseded('the certificate is disabled');
  const issuer = await findIssuerById(vault.db.reader, renewal.issuer_id ?? certificate.issuer_id ?? 0);
  if (issuer === undefined) throw new Superseded('the issuer was removed');
  const privateKey = await renewalKey(vault, attempt);
  if (issuer.type === 'acme') return issueFromAcme(vault, attempt, issuer, privateKey);
  const issued = await issueFromLocalCa(vault, {
    identifiers: JSON.parse(certificate.domains) as Identifier[],
    privateKey,
    lifetime: certificate.lifetime ?? undefined,
  });
  return { source: 'local-ca', ...issued, privateKey };
}

/** What people may read about a failure; the storage's own troubles name paths and are for the log alone. */
function reasonOf(error: unknown, stopped: StopReason | undefined): string {
  if (stopped === 'deadline') return `Given up after ${attemptPatience / hour} h: ${textOf(error)}`;
  return textOf(error);
}

function textOf(error: unknown): string {
  const isForPeople =
    error instanceof Problem || (error instanceof OperatorError && !(error instanceof StorageError));
  if (!isForPeople) return 'The vault failed; its log has the cause.';
  const { message, hint } = error;
  return hint === undefined ? message : `${message.replace(/\.$/, '')}. ${hint}`;
}

/** The key of the version to come: the stored one after a crash, the current one where it is reused, else a new one. */
async function renewalKey(vault: SecretsContext, attempt: Attempt): Promise<Secret> {
  const { renewal, certificate } = attempt;
  const keyType = isKeyType(certificate.key_type) ? certificate.key_type : defaultKeyType;
  const place = renewalKeyOwner(renewal.id);
  if (renewal.sealed_private_key !== null) {
    const stored = openFor(vault, place, renewal.sealed_private_key);
    const isWanted = keyTypeOf(keyObject(stored)) === keyType;
    if (isWanted && !(await isRevokedKey(vault, certificate, stored))) return stored;
  }
  const key =
    (certificate.reuse_key === 1 ? await currentKey(vault, certificate, keyType) : undefined) ??
    (await generatePrivateKey(keyType));
  // An order that was made for another key is not resumed.
  await keep(vault, attempt, async (writer) => ({
    sealed_private_key: await sealFor(vault, writer, place, key),
    order_url: null,
    order_domains: null,
  }));
  return key;
}

/** The current version's key, where it is of the wanted type and may be used again. */
async function currentKey(
  vault: DatabaseContext & KeyringContext,
  certificate: CertificateRow,
  keyType: string,
): Promise<Secret | undefined> {
  if (certificate.current_version === null) return undefined;
  const version = await findVersion(vault.db.reader, certificate.id, certificate.current_version);
  if (version === undefined || version.key_type !== keyType) return undefined;
  return version.revoked_at === null ? versionPrivateKey(vault, version) : undefined;
}

/** Whether the key was taken from the current version for using it again, before that was revoked. */
async function isRevokedKey(
  vault: DatabaseContext & KeyringContext,
  { id, current_version: number }: CertificateRow,
  key: Secret,
): Promise<boolean> {
  const version = number === null ? undefined : await findVersion(vault.db.reader, id, number);
  if (version === undefined || version.revoked_at === null) return false;
  return publicKeyOf(versionPrivateKey(vault, version)).equals(publicKeyOf(key));
}

function logged({ certificate, renewal }: Attempt): Readonly<Record<string, unknown>> {
  return { certificate: certificate.name, renewal: renewal.id };
}
