/** Creates and deletes certificates. */
import type { CertName } from '../../base/cert-name.ts';
import { toJson } from '../../base/json.ts';
import type { KeyType } from '../../base/key-type.ts';
import { Problem } from '../../base/problem.ts';
import { generatePrivateKey, keyObject, keyTypeOf, publicKeyOf } from '../../crypto/key-pair.ts';
import { isApiKeyAuthentic, tagApiKey } from '../../db/audit/row-tags.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { apiKeysNaming, removeFromAllowlists } from '../../db/tables/access/api-key-certificates.ts';
import { setCertificateLabels } from '../../db/tables/certificates/certificate-labels.ts';
import { findOwner } from '../../db/tables/certificates/certificate-owners.ts';
import {
  deleteCertificateRow,
  findCertificate,
  insertCertificate,
} from '../../db/tables/certificates/certificates.ts';
import type { IssuerRow } from '../../db/tables/issuance/issuers.ts';
import { anyProfile, type ProfileCheck, profileAt } from '../access/profile-confinement.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SealingContext, SecretsContext, TimedContext, WorldContext } from '../contexts.ts';
import { refuseWildcardsWithoutZone, type ZoneContext } from '../dns-providers/wildcard-zones.ts';
import {
  type CreateCertificateInput,
  type NewCertificate,
  newCertificateName,
  parseInput,
} from '../inputs.ts';
import {
  issuerKeyType,
  refuseProfileFallback,
  refuseSameFallback,
  refuseUnpermitted,
  refuseUnsuitable,
  refuseUnsuitableFallback,
  requireIssuer,
} from '../issuers/issuers.ts';
import { labelsOf, storeLabels } from '../labels/certificate-labelling.ts';
import { notifyIssued } from '../notifications/certificate-notices.ts';
import { issueFromPrivateCa } from '../private-ca/leaf-issuance.ts';
import { leafColumns } from '../private-ca/leaf-settings.ts';
import { refuseOutsideProfile } from '../private-ca/profile-rules.ts';
import { type QueueContext, queueRenewal } from '../renewals/renewal-queue.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { addVersion, type VersionMaterial } from '../versions/versions.ts';
import { refuseInUse } from './certificate-uses.ts';
import { type CompleteCertificate, completeCertificate, refuseUnsuitableRequest } from './client-keys.ts';
import { keepDeleted } from './deleted-certificates.ts';

/**
 * Creates a certificate in one transaction. The private CA issues version 1 immediately; for an ACME CA, the first
 * renewal is queued and its id returned. Throws `certificate_exists`, `invalid_request`, and what `check` throws about
 * its profile.
 */
export async function createCertificate(
  vault: SecretsContext & QueueContext & ZoneContext,
  actor: Actor,
  input: NewCertificate,
  check: ProfileCheck = anyProfile,
): Promise<number | undefined> {
  const complete = completeCertificate(
    input,
    await issuerKeyType(vault.db.reader, input.issuer, input.profile),
  );
  const { issuer } = await suitableIssuers(vault.db.reader, complete);
  check(profileAt(issuer, input.profile));
  await refuseWildcardsWithoutZone(vault, issuer, complete);
  const isIssuedNow = issuer.type !== 'acme' && input.disabled !== true;
  const first = isIssuedNow ? await firstVersion(vault, issuer, input) : undefined;
  const renewal = await vault.db.write((writer) =>
    storeCertificate(vault, writer, actor, input, first, check),
  );
  if (renewal !== undefined) vault.renewalQueued.notify();
  return renewal;
}

/**
 * The part of `createCertificate` that writes, in the caller's transaction. `first` is the version that the private CA
 * issued. Without it, a renewal is queued and its id returned; then notify `renewalQueued` after the commit.
 */
export async function storeCertificate(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  given: NewCertificate,
  first: VersionMaterial | undefined,
  check: ProfileCheck = anyProfile,
): Promise<number | undefined> {
  const input = completeCertificate(given, await issuerKeyType(writer, given.issuer, given.profile));
  parseInput(newCertificateName, { name: input.name });
  const { issuer, fallback } = await suitableIssuers(writer, input);
  check(profileAt(issuer, input.profile));
  // The settings of the CA may have changed since the key was generated.
  const keyType = first?.privateKey === undefined ? input.key_type : keyTypeOf(keyObject(first.privateKey));
  const now = vault.world.now();
  const isRenewed = input.auto_renew !== false && input.disabled !== true;
  const id = await insertCertificate(writer, {
    name: input.name,
    domains: toJson(input.domains),
    key_type: keyType,
    issuer_id: issuer.id,
    fallback_issuer_id: fallback?.id ?? null,
    auto_renew: input.auto_renew === false ? 0 : 1,
    disabled_at: input.disabled === true ? now : null,
    reuse_key: input.reuse_key ? 1 : 0,
    lifetime: input.lifetime ?? null,
    profile: input.profile ?? null,
    challenge: input.challenge ?? null,
    ...leafColumns(input),
    csr: input.csr ?? null,
    next_renewal_at: isRenewed ? now : null,
    created_at: now,
  });
  const labels = input.labels ?? [];
  const labelled = labels.length === 0 ? {} : await storeLabels(writer, { id, name: input.name }, labels);
  const resource = `certificate:${input.name}`;
  const { usage, uris, emails, subject } = input;
  const leaf = { usage, uris, emails, subject };
  const detail = {
    ...{ domains: input.domains, ...leaf, key_type: keyType, issuer: issuer.name },
    ...(input.profile !== undefined && { profile: input.profile }),
    ...(input.request && { csr: input.request.pin }),
    ...labelled,
  };
  record(writer, { actor, action: 'certificate.create', resource, detail }, now);
  if (input.disabled === true) return undefined;
  const certificate = await requireCertificate(writer, input.name);
  if (first === undefined) return (await queueRenewal(vault, writer, actor, certificate)).id;
  const version = await addVersion(vault, writer, { ...certificate, id }, first);
  record(writer, { actor, action: 'certificate.issue', resource, detail: { version } }, now);
  await notifyIssued(vault.world, writer, certificate, version);
  return undefined;
}

/** The issuers of a new certificate. Throws if they do not exist or cannot issue it. */
async function suitableIssuers(
  reader: Reader,
  input: CompleteCertificate,
): Promise<{ readonly issuer: IssuerRow; readonly fallback: IssuerRow | undefined }> {
  const issuer = await requireIssuer(reader, input.issuer, 'issuer');
  const fallback =
    input.fallback_issuer === undefined
      ? undefined
      : await requireIssuer(reader, input.fallback_issuer, 'fallback_issuer');
  refuseUnsuitable(issuer, input);
  refuseSameFallback(issuer, fallback?.id ?? null);
  refuseUnsuitableFallback(fallback, input);
  refuseProfileFallback(issuer, input.profile, fallback);
  if (input.request !== undefined) {
    refuseUnsuitableRequest(issuer, input.request);
    refuseUnsuitableRequest(fallback, input.request);
  }
  for (const one of [issuer, fallback]) if (one !== undefined) await refuseUnpermitted(reader, one, input);
  await refuseOutsideProfile(reader, issuer, input);
  await refuseExisting(reader, input.name);
  return { issuer, fallback };
}

/** The first version of a new certificate from a private CA: for its CSR, or with a new key. */
export async function firstVersion(
  vault: SecretsContext,
  issuer: Pick<IssuerRow, 'id' | 'name'>,
  given: CreateCertificateInput,
): Promise<VersionMaterial> {
  const { request, ...input } = completeCertificate(
    given,
    await issuerKeyType(vault.db.reader, issuer.name, given.profile),
  );
  const privateKey = request === undefined ? await generatePrivateKey(input.key_type as KeyType) : undefined;
  const publicKey = privateKey === undefined ? request?.publicKey : publicKeyOf(privateKey);
  if (publicKey === undefined) throw new Error('a certificate without a key');
  const { domains: identifiers, lifetime, profile, usage, uris, emails, subject } = input;
  const leaf = { profile, usage, uris, emails, subject };
  const issued = await issueFromPrivateCa(vault, issuer, { identifiers, publicKey, lifetime, ...leaf });
  return { source: 'local-ca', ...issued, privateKey };
}

async function refuseExisting(reader: Reader, name: CertName): Promise<void> {
  const existing = await findCertificate(reader, name);
  if (existing === undefined) return;
  const owner =
    existing.acme_client_id === null ? undefined : await findOwner(reader, existing.acme_client_id);
  if (owner !== undefined) {
    throw new Problem('certificate_exists', {
      detail: `Certificate "${name}" already exists; it belongs to the ACME client "${owner.name}".`,
      hint: 'Choose another name.',
    });
  }
  throw new Problem('certificate_exists', {
    detail: `Certificate "${name}" already exists.`,
    hint: `Choose another name, or change it with "vault certificate update --name ${name}".`,
  });
}

/**
 * Deletes a certificate; it is kept apart until it is restored or purged (deleted-certificates.ts). Throws
 * `certificate_not_found`, and `certificate_in_use` if the running server serves HTTPS with it, or if an unrevoked API
 * key has it in its allowlist or as its client certificate, or if the vault installs it on a deploy target. With
 * `force`, it is deleted all the same and removed from all allowlists and targets, and keys stay bound to it.
 */
export async function deleteCertificate(
  vault: TimedContext,
  actor: Actor,
  name: string,
  options: { readonly force: boolean },
): Promise<void> {
  await vault.db.write((writer) => eraseCertificate(vault, writer, actor, name, options));
}

/** `deleteCertificate` in the caller's transaction. */
export async function eraseCertificate(
  vault: WorldContext,
  writer: Writer,
  actor: Actor,
  name: string,
  { force }: { readonly force: boolean },
): Promise<void> {
  const certificate = await requireCertificate(writer, name, { suggest: true });
  const naming = await apiKeysNaming(writer, certificate.id);
  const active = naming.filter(({ revoked_at }) => revoked_at === null);
  if (!force) await refuseInUse(writer, certificate, active);
  const authentic: number[] = [];
  for (const { id } of naming) if (await isApiKeyAuthentic(writer, id)) authentic.push(id);
  await removeFromAllowlists(writer, certificate.id);
  for (const id of authentic) await tagApiKey(writer, id);
  await keepDeleted(
    vault,
    writer,
    actor,
    certificate,
    active.map(({ id, name }) => ({ id, name })),
  );
  const labels = labelsOf(certificate);
  if (labels.length > 0) await setCertificateLabels(writer, certificate, []);
  await deleteCertificateRow(writer, certificate.id);
  const detail = {
    versions: certificate.current_version ?? 0,
    removed_from_api_keys: naming.map(({ id }) => id),
    ...(labels.length > 0 && { labels }),
  };
  record(
    writer,
    { actor, action: 'certificate.delete', resource: `certificate:${name}`, detail },
    vault.world.now(),
  );
}
