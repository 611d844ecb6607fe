/**
 * Stores new versions and computes once what requests need later: normalized PEM, entity tags from the content, and the
 * private key sealed for this version.
 */
import { createPrivateKey } from 'node:crypto';
import type { CertName } from '../../base/cert-name.ts';
import { minute } from '../../base/duration.ts';
import { toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { encodePem } from '../../crypto/pem.ts';
import { type CertificateFacts, certificateFacts } from '../../crypto/x509/certificate-facts.ts';
import type { Reader, Writer } from '../../db/database.ts';
import {
  type CertificateVersionRow,
  findVersion,
  insertVersion,
  lastVersionNumber,
  listVersions,
  type VersionSummaryRow,
} from '../../db/tables/certificates/certificate-versions.ts';
import { updateCertificate } from '../../db/tables/certificates/certificates.ts';
import { deploySoon } from '../../db/tables/deploy-targets.ts';
import { checkSoon } from '../../db/tables/endpoints.ts';
import { together } from '../../db/together.ts';
import type { DatabaseContext, KeyringContext, SealingContext } from '../contexts.ts';
import { nextRenewalAt, type PlannedCertificate } from '../schedule/renewal-plan.ts';
import { openFor, sealFor, versionKeyOwner } from '../sealed-secrets.ts';
import { endRotation } from './next-key.ts';

export type VersionMaterial = {
  readonly source: CertificateVersionRow['source'];
  /** DER; the chain has the intermediates in order, without the root. */
  readonly leaf: Buffer;
  readonly chain: readonly Buffer[];
  /** Of the leaf, where they were read already. */
  readonly facts?: CertificateFacts;
  /** PKCS#8 DER; undefined if the client holds it. */
  readonly privateKey: Secret | undefined;
  /** For a certificate of an ACME CA: its directory, and the account that ordered it. */
  readonly acme?: { readonly directoryUrl: string; readonly accountId: number };
};

/**
 * Adds the next version of a certificate and makes it current, in the caller's transaction. Schedules the next renewal
 * if the certificate has an issuer. Returns the number of the version.
 */
export async function addVersion(
  vault: SealingContext,
  writer: Writer,
  certificate: Omit<
    PlannedCertificate,
    'failed_attempts' | 'last_attempt_at' | 'retry_after' | 'fallback_retry_after' | 'ari_renew_at'
  > & {
    readonly id: number;
  },
  material: VersionMaterial,
): Promise<number> {
  const now = vault.world.now();
  const version = (await lastVersionNumber(writer, certificate.id)) + 1;
  const facts = material.facts ?? certificateFacts(material.leaf);
  const certificatePem = encodePem('CERTIFICATE', material.leaf);
  const chainPem = material.chain.map((der) => encodePem('CERTIFICATE', der)).join('');
  const { privateKey } = material;
  const keyPem = privateKey && Buffer.from(encodePem('PRIVATE KEY', privateKey.expose()));
  const row = {
    certificate_id: certificate.id,
    version,
    serial: facts.serial,
    issuer: facts.issuer,
    subject: facts.subject,
    domains: toJson(facts.domains),
    key_type: facts.keyType,
    fingerprint_sha256: facts.fingerprintSha256,
    not_before: facts.notBefore,
    not_after: facts.notAfter,
    created_at: now,
    source: material.source,
    certificate_pem: certificatePem,
    chain_pem: chainPem,
    sealed_private_key:
      keyPem === undefined
        ? notHeld
        : await sealFor(vault, writer, versionKeyOwner(certificate.id, version), new Secret(keyPem)),
    certificate_etag: etag(vault, certificatePem),
    chain_etag: etag(vault, chainPem),
    fullchain_etag: etag(vault, certificatePem + chainPem),
    private_key_etag: keyPem === undefined ? '' : etag(vault, keyPem),
    acme_account_id: material.acme?.accountId ?? null,
    directory_url: material.acme?.directoryUrl ?? null,
  };
  const fresh = { failed_attempts: 0, last_attempt_at: null, retry_after: null, ari_renew_at: null };
  const current = {
    not_before: facts.notBefore,
    not_after: facts.notAfter,
    serial: facts.serial,
    created_at: now,
    source: material.source,
  };
  const changes = {
    current_version: version,
    failed_attempts: 0,
    last_error: null,
    retry_after: null,
    fallback_retry_after: null,
    ari_window_start: null,
    ari_window_end: null,
    ari_renew_at: null,
    ari_check_at: material.acme === undefined ? null : now,
    next_renewal_at: nextRenewalAt({ ...certificate, ...fresh }, current, now),
  };
  await together([
    insertVersion(writer, row),
    endRotation(writer, certificate.id, material.leaf),
    updateCertificate(writer, certificate.id, changes),
    // The fastest clients have it in a minute.
    checkSoon(writer, certificate.id, { now, at: now + minute }),
    deploySoon(writer, certificate.id, now),
  ]);
  return version;
}

/** In place of the sealed private key of a version that the client holds. */
const notHeld = Buffer.alloc(0);

/** Whether the vault has the private key of a version; otherwise the client holds it. */
export function holdsKey({ private_key_etag }: Pick<CertificateVersionRow, 'private_key_etag'>): boolean {
  return private_key_etag !== '';
}

/** A version's private key as PKCS#8 DER. Throws `private_key_not_held`. */
export function versionPrivateKey(
  vault: KeyringContext,
  version: Parameters<typeof openVersionKey>[1],
): Secret {
  const key = createPrivateKey(openVersionKey(vault, version).expose());
  return new Secret(key.export({ type: 'pkcs8', format: 'der' }));
}

/** The PEM of a version's private key. Throws `private_key_not_held`. */
export function openVersionKey(
  vault: KeyringContext,
  version: Pick<CertificateVersionRow, 'certificate_id' | 'version' | 'sealed_private_key'>,
): Secret {
  if (version.sealed_private_key.length === 0) throw new Problem('private_key_not_held');
  return openFor(vault, versionKeyOwner(version.certificate_id, version.version), version.sealed_private_key);
}

/**
 * The row of a version, or of the current one without a number. Throws `no_current_version` if nothing has been issued
 * yet and `version_not_found` if there is no such version.
 */
export async function requireVersion(
  reader: Reader,
  certificate: {
    readonly id: number;
    readonly name: CertName | string;
    readonly current_version: number | null;
  },
  number: number | undefined,
): Promise<CertificateVersionRow> {
  const wanted = number ?? certificate.current_version;
  if (wanted === null) throw new Problem('no_current_version');
  const row = await findVersion(reader, certificate.id, wanted);
  if (row !== undefined) return row;
  throw new Problem('version_not_found', {
    detail: `Certificate ${JSON.stringify(certificate.name)} has no version ${wanted}.`,
  });
}

/** A version on a page of the list. */
export type VersionOnPage = VersionSummaryRow;

/** Versions of the certificate with this id, newest first; only those below `before` where it is given. */
export function pageVersions(
  { db }: DatabaseContext,
  certificateId: number,
  page: { readonly before?: number | undefined; readonly limit: number },
): Promise<VersionOnPage[]> {
  return listVersions(db.reader, certificateId, page);
}

/** The version with this number of the certificate with this id. */
export function versionNumbered(
  { db }: DatabaseContext,
  certificateId: number,
  number: number,
): Promise<CertificateVersionRow | undefined> {
  return findVersion(db.reader, certificateId, number);
}

/**
 * A strong entity tag from the content. It is keyed, so that people who see the tag of a private key in metadata but
 * may not read the key cannot verify a guessed key against it.
 */
function etag({ keyring }: KeyringContext, content: Buffer | string): string {
  const tag = keyring.current.authenticate('entity tag', Buffer.from(content));
  return `"${tag.subarray(0, 18).toString('base64url')}"`;
}
