/** Changes to a certificate: names, key type, issuers and renewal settings. */
import { defaultKeyType, isKeyType } from '../../base/key-type.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { generatePrivateKey } from '../../crypto/key-pair.ts';
import type { Writer } from '../../db/database.ts';
import { findVersion } from '../../db/tables/certificate-versions.ts';
import { type CertificateRow, findCertificate, updateCertificate } from '../../db/tables/certificates.ts';
import { findIssuer, findIssuerById, type IssuerRow } from '../../db/tables/issuers.ts';
import { findOpenRenewal, updateRenewal } from '../../db/tables/renewals.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SealingContext, WorldContext } from '../contexts.ts';
import type { UpdateCertificateInput } from '../inputs.ts';
import { refuseSameFallback, refuseUnsuitable, requireIssuer } from '../issuance/issuers.ts';
import { refuseWildcardsWithoutZone, type ZoneContext } from '../issuance/wildcard-zones.ts';
import { type QueueContext, queueRenewal } from '../renewals/renewal-queue.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { cancelRotation, isNextKeyScheduled, scheduleNextKey } from '../versions/next-key.ts';
import { nextRenewalAt } from '../versions/renewal-plan.ts';
import { refuseUnsuitableFallback } from './certificates.ts';

/**
 * Changes the certificate and queues a renewal if names or key type changed. Returns the id of that renewal. `rotate_key`
 * generates the key of the next version now; one that is scheduled already stays, because clients may know its pin. Throws
 * `certificate_not_found`, `invalid_request`, and `not_renewable` for an imported certificate that gets no issuer.
 */
export async function changeCertificate(
  vault: QueueContext & SealingContext & ZoneContext,
  actor: Actor,
  name: string,
  input: UpdateCertificateInput,
): Promise<number | undefined> {
  await refuseNewWildcards(vault, name, input);
  // Before the transaction: an RSA key can take seconds.
  const key = input.rotate_key === true ? await keyToSchedule(vault, name, input) : undefined;
  const renewal = await vault.db.write(async (writer) => {
    const id = await storeCertificateChange(vault, writer, actor, name, input);
    const certificate = await requireCertificate(writer, name);
    if (key !== undefined) await scheduleNextKey(vault, writer, certificate.id, key);
    if (input.rotate_key === false) await cancelRotation(writer, certificate.id);
    return id;
  });
  if (renewal !== undefined) vault.renewalQueued.notify();
  return renewal;
}

/** Throws like `refuseWildcardsWithoutZone` for the wildcards that the change adds or gives to another issuer. */
async function refuseNewWildcards(
  vault: ZoneContext,
  name: string,
  input: UpdateCertificateInput,
): Promise<void> {
  const { reader } = vault.db;
  const before = await findCertificate(reader, name);
  if (before === undefined) return;
  const issuer =
    input.issuer === undefined
      ? await findIssuerById(reader, before.issuer_id ?? 0)
      : await findIssuer(reader, input.issuer);
  if (issuer === undefined) return;
  const known = JSON.parse(before.domains) as string[];
  const isSame = issuer.id === before.issuer_id && before.challenge === null;
  const domains = (input.domains ?? known).filter((domain) => !isSame || !known.includes(domain));
  const challenge = input.challenge === undefined ? before.challenge : input.challenge;
  await refuseWildcardsWithoutZone(vault, issuer, { domains, challenge });
}

/** A new key of the type that the certificate has after the change; undefined if the next key is scheduled and has it. */
async function keyToSchedule(
  vault: QueueContext,
  name: string,
  { key_type: wanted }: UpdateCertificateInput,
): Promise<Secret | undefined> {
  const before = await findCertificate(vault.db.reader, name);
  if (before === undefined) return undefined;
  const keyType = wanted ?? (isKeyType(before.key_type) ? before.key_type : defaultKeyType);
  const isKept = keyType === before.key_type && (await isNextKeyScheduled(vault, before.id));
  return isKept ? undefined : generatePrivateKey(keyType);
}

/** `changeCertificate` in the caller's transaction, without `rotate_key`; if it returns a renewal, notify `renewalQueued` after the commit. */
export async function storeCertificateChange(
  vault: WorldContext,
  writer: Writer,
  actor: Actor,
  name: string,
  input: UpdateCertificateInput,
): Promise<number | undefined> {
  const now = vault.world.now();
  const before = await requireCertificate(writer, name, { suggest: true });
  const issuer =
    input.issuer === undefined
      ? await findIssuerById(writer, before.issuer_id ?? 0)
      : await requireIssuer(writer, input.issuer, 'issuer');
  if (issuer === undefined) throw new Problem('not_renewable');
  const fallback =
    typeof input.fallback_issuer === 'string'
      ? (await requireIssuer(writer, input.fallback_issuer, 'fallback_issuer')).id
      : input.fallback_issuer;
  const changes = changesFor(before, input, issuer, fallback, now);
  const after = { ...before, ...changes };
  refuseUnsuitable(issuer, issuanceSettings(after));
  refuseSameFallback(issuer, after.fallback_issuer_id);
  refuseUnsuitableFallback(await findIssuerById(writer, after.fallback_issuer_id ?? 0), after.key_type);
  const number = before.current_version;
  const current = number === null ? undefined : await findVersion(writer, before.id, number);
  const next = nextRenewalAt(after, current, now);
  await updateCertificate(writer, before.id, { ...changes, next_renewal_at: next });
  // The next version has a new key anyway, of another type.
  if (after.key_type !== before.key_type) await cancelRotation(writer, before.id);
  if (issuer.id !== before.issuer_id) await redirectQueued(writer, before.id, issuer.id);
  const event = {
    actor,
    action: 'certificate.update',
    resource: `certificate:${name}`,
    detail: input,
  } as const;
  await record(writer, event, now);
  const isDue = after.changed_at !== null && before.changed_at !== after.changed_at;
  if (!isDue || after.disabled_at !== null) return undefined;
  return (await queueRenewal(vault, writer, actor, after)).id;
}

/** Moves a queued renewal to the new issuer. A running renewal notices the change itself. */
async function redirectQueued(writer: Writer, certificateId: number, issuerId: number): Promise<void> {
  const open = await findOpenRenewal(writer, certificateId);
  if (open?.status !== 'queued') return;
  await updateRenewal(writer, open.id, { issuer_id: issuerId, held_until: null, hold_reason: null });
}

function changesFor(
  before: CertificateRow,
  input: UpdateCertificateInput,
  issuer: IssuerRow,
  fallbackId: number | null | undefined,
  now: number,
): Partial<CertificateRow> {
  const domains = input.domains && JSON.stringify(input.domains);
  const hasOtherNames = domains !== undefined && !sameNames(domains, before.domains);
  const hasOtherKey = input.key_type !== undefined && input.key_type !== before.key_type;
  const hasOtherIssuer = issuer.id !== before.issuer_id;
  const wasImported = before.issuer_id === null;
  return {
    ...(hasOtherNames && { domains }),
    ...(hasOtherKey && { key_type: input.key_type ?? before.key_type }),
    ...((hasOtherNames || hasOtherKey || wasImported) && { changed_at: now }),
    // Earlier failures say nothing about the changed certificate.
    ...((hasOtherNames || hasOtherKey || hasOtherIssuer) && {
      failed_attempts: 0,
      retry_after: null,
      fallback_retry_after: null,
    }),
    ...(hasOtherIssuer && { issuer_id: issuer.id }),
    // An ACME CA chooses the lifetime itself.
    ...(hasOtherIssuer && issuer.type === 'acme' && { lifetime: null }),
    ...(input.lifetime !== undefined && { lifetime: input.lifetime }),
    ...(wasImported && { auto_renew: 1 as const }),
    ...(fallbackId !== undefined && { fallback_issuer_id: fallbackId }),
    ...(fallbackId !== undefined &&
      fallbackId !== before.fallback_issuer_id && { fallback_retry_after: null }),
    ...(input.profile !== undefined && { profile: input.profile }),
    ...(input.challenge !== undefined && { challenge: input.challenge }),
    ...(input.reuse_key !== undefined && { reuse_key: input.reuse_key ? (1 as const) : (0 as const) }),
    ...(input.auto_renew !== undefined && { auto_renew: input.auto_renew ? (1 as const) : (0 as const) }),
    ...(input.disabled !== undefined && { disabled_at: input.disabled ? (before.disabled_at ?? now) : null }),
  };
}

function sameNames(one: string, other: string): boolean {
  const sorted = (text: string) => JSON.stringify((JSON.parse(text) as string[]).sort());
  return sorted(one) === sorted(other);
}

function issuanceSettings({ domains, key_type, profile, challenge, lifetime }: CertificateRow) {
  return {
    domains: JSON.parse(domains) as never[],
    key_type: key_type as never,
    profile: profile ?? undefined,
    challenge: (challenge ?? undefined) as never,
    lifetime: lifetime ?? undefined,
  };
}
