/** Changes to a certificate: names, key type, issuers and renewal settings. */
import { parseJson } from '../../base/json.ts';
import { defaultKeyType, isKeyType } from '../../base/key-type.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { generatePrivateKey } from '../../crypto/key-pair.ts';
import { isSameRequest, readSigningRequest } from '../../crypto/x509/signing-request.ts';
import type { Writer } from '../../db/database.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import {
  type CertificateRow,
  findCertificate,
  updateCertificate,
} from '../../db/tables/certificates/certificates.ts';
import { findIssuer, findIssuerById, type IssuerRow } from '../../db/tables/issuance/issuers.ts';
import { findOpenRenewal, updateRenewal } from '../../db/tables/renewals/renewals.ts';
import { anyProfile, type ProfileCheck, profileAt } from '../access/profile-confinement.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SealingContext, WorldContext } from '../contexts.ts';
import { refuseWildcardsWithoutZone, type ZoneContext } from '../dns-providers/wildcard-zones.ts';
import type { UpdateCertificateInput } from '../inputs.ts';
import {
  refuseProfileFallback,
  refuseSameFallback,
  refuseUnpermitted,
  refuseUnsuitable,
  refuseUnsuitableFallback,
  requireIssuer,
} from '../issuers/issuers.ts';
import { changeLabels } from '../labels/certificate-labelling.ts';
import { refuseOutsideProfile } from '../private-ca/profile-rules.ts';
import { supersedeRunning } from '../renewals/renewal-outcome.ts';
import { type QueueContext, queueRenewal } from '../renewals/renewal-queue.ts';
import { nextRenewalAt } from '../schedule/renewal-plan.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { refuseOwned } from '../versions/certificate-owners.ts';
import { cancelRotation, isNextKeyScheduled, scheduleNextKey } from '../versions/next-key.ts';
import { changesFor, issuanceSettings } from './certificate-changes.ts';
import {
  refuseContradictions,
  refuseOtherNamesThanRequest,
  refuseRevokedKey,
  refuseServedCertificate,
  refuseUnsuitableRequest,
} from './client-keys.ts';

/**
 * Changes the certificate and queues a renewal if names or key type changed. Returns the id of that renewal.
 * `rotate_key` generates the key of the next version now; one that is scheduled already stays, because clients may know
 * its pin. Throws `certificate_not_found`, `invalid_request`, `not_renewable` for a certificate of an ACME client, and
 * for an imported one that gets no issuer, and what `check` throws about its profile after the change, unless nothing
 * is issued because of it.
 */
export async function changeCertificate(
  vault: QueueContext & SealingContext & ZoneContext,
  actor: Actor,
  name: string,
  input: UpdateCertificateInput,
  check: ProfileCheck = anyProfile,
): Promise<number | undefined> {
  await refuseNewWildcards(vault, name, input);
  // Before the transaction: an RSA key can take seconds.
  const key = input.rotate_key === true ? await keyToSchedule(vault, name, input) : undefined;
  const renewal = await vault.db.write(async (writer) => {
    const id = await storeCertificateChange(vault, writer, actor, name, input, check);
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
  const known = parseJson(before.domains);
  const isSame = issuer.id === before.issuer_id && before.challenge === null;
  const domains = (input.domains ?? known).filter((domain) => !isSame || !known.includes(domain));
  const challenge = input.challenge === undefined ? before.challenge : input.challenge;
  await refuseWildcardsWithoutZone(vault, issuer, { domains, challenge });
}

/**
 * A new key of the type that the certificate has after the change; undefined if the next key is scheduled and has it.
 */
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

/**
 * `changeCertificate` in the caller's transaction, without `rotate_key`; if it returns a renewal, notify
 * `renewalQueued` after the commit.
 */
export async function storeCertificateChange(
  vault: WorldContext,
  writer: Writer,
  actor: Actor,
  name: string,
  { labels, ...input }: UpdateCertificateInput,
  check: ProfileCheck = anyProfile,
): Promise<number | undefined> {
  const now = vault.world.now();
  const before = await requireCertificate(writer, name, { suggest: true });
  if (labels !== undefined) await changeLabels(vault, writer, actor, before, labels);
  // Also certificates that are not renewed have labels.
  const isOnlyLabelled = labels !== undefined && Object.values(input).every((value) => value === undefined);
  if (isOnlyLabelled) return undefined;
  await refuseOwned(writer, before);
  refuseContradictions(before, input);
  const issuer =
    input.issuer === undefined
      ? await findIssuerById(writer, before.issuer_id ?? 0)
      : await requireIssuer(writer, input.issuer, 'issuer');
  if (issuer === undefined) throw new Problem('not_renewable');
  const fallback =
    typeof input.fallback_issuer === 'string'
      ? (await requireIssuer(writer, input.fallback_issuer, 'fallback_issuer')).id
      : input.fallback_issuer;
  const former = await findIssuerById(writer, before.issuer_id ?? 0);
  const leavesProfile = issuer.type === 'acme' && former !== undefined && former.type !== 'acme';
  const changes = {
    // A profile of a private CA means nothing to an ACME CA.
    ...(leavesProfile && before.profile !== null && { profile: null }),
    ...changesFor(before, input, issuer, fallback, now),
  };
  const after = { ...before, ...changes };
  if (leadsToIssuance(input)) check(profileAt(issuer, after.profile));
  refuseUnsuitable(issuer, issuanceSettings(after));
  refuseSameFallback(issuer, after.fallback_issuer_id);
  const fallbackIssuer = await findIssuerById(writer, after.fallback_issuer_id ?? 0);
  refuseUnsuitableFallback(fallbackIssuer, issuanceSettings(after));
  refuseProfileFallback(issuer, after.profile, fallbackIssuer);
  if (after.csr !== null) await refuseUnusableRequest(writer, before, after, [issuer, fallbackIssuer]);
  // A name that is no longer permitted does not stand in the way of other changes.
  const hasOtherNames = after.changed_at !== before.changed_at;
  if (hasOtherNames || issuer.id !== before.issuer_id) {
    await refuseUnpermitted(writer, issuer, issuanceSettings(after));
  }
  if (fallbackIssuer !== undefined && (hasOtherNames || fallbackIssuer.id !== before.fallback_issuer_id)) {
    await refuseUnpermitted(writer, fallbackIssuer, issuanceSettings(after));
  }
  if (concernsProfile(input)) {
    await refuseOutsideProfile(writer, issuer, { ...issuanceSettings(after), ...askedUsage(input) });
  }
  const number = before.current_version;
  const current = number === null ? undefined : await findVersion(writer, before.id, number);
  const next = nextRenewalAt(after, current, now);
  await updateCertificate(writer, before.id, { ...changes, next_renewal_at: next });
  // The next version has a new key anyway, of another type.
  if (after.key_type !== before.key_type || after.csr !== null) await cancelRotation(writer, before.id);
  if (!isSameRequest(before.csr, after.csr)) {
    await supersedeRunning(writer, before.id, 'Superseded: the CSR was changed.', now);
  }
  if (issuer.id !== before.issuer_id) await redirectQueued(writer, before.id, issuer.id);
  const event = {
    actor,
    action: 'certificate.update',
    resource: `certificate:${name}`,
    detail: typeof input.csr === 'string' ? { ...input, csr: readSigningRequest(input.csr).pin } : input,
  } as const;
  record(writer, event, now);
  const isDue = after.changed_at !== null && before.changed_at !== after.changed_at;
  if (!isDue || after.disabled_at !== null) return undefined;
  return (await queueRenewal(vault, writer, actor, after)).id;
}

/** Whether a certificate may be issued because of the change, now or later: all but what ends renewals. */
function leadsToIssuance({ auto_renew, disabled, ...others }: UpdateCertificateInput): boolean {
  return (
    auto_renew === true || disabled === false || Object.values(others).some((value) => value !== undefined)
  );
}

/** Whether the change is about what a profile has a say in; anything else can be changed also outside the profile. */
function concernsProfile(input: UpdateCertificateInput): boolean {
  const { auto_renew, disabled, reuse_key, rotate_key, challenge, fallback_issuer, ...others } = input;
  return Object.values(others).some((value) => value !== undefined);
}

/** Both usages are stored as none, which a profile fills in; asked for, they can contradict it. */
function askedUsage({ usage }: UpdateCertificateInput) {
  return usage === 'both' ? { usage } : {};
}

/**
 * Throws `invalid_request` or `certificate_in_use` if the certificate cannot be issued for its CSR after the change.
 */
async function refuseUnusableRequest(
  writer: Writer,
  before: CertificateRow,
  after: CertificateRow,
  issuers: readonly (IssuerRow | undefined)[],
): Promise<void> {
  const request = readSigningRequest(after.csr ?? '');
  refuseOtherNamesThanRequest(after, request);
  for (const issuer of issuers) refuseUnsuitableRequest(issuer, request);
  if (before.csr === null) await refuseServedCertificate(writer, before.name);
  if (after.csr !== before.csr) await refuseRevokedKey(writer, before, request.publicKey);
}

/** Moves a queued renewal to the new issuer. A running renewal notices the change itself. */
async function redirectQueued(writer: Writer, certificateId: number, issuerId: number): Promise<void> {
  const open = await findOpenRenewal(writer, certificateId);
  if (open?.status !== 'queued') return;
  await updateRenewal(writer, open.id, { issuer_id: issuerId, held_until: null, hold_reason: null });
}
