/** The key of the next version of a certificate: the client's, from its CSR, or one that the vault holds. */
import { X509Certificate } from 'node:crypto';
import { defaultKeyType, isKeyType } from '../../base/key-type.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { generatePrivateKey, keyObject, keyTypeOf, publicKeyOf } from '../../crypto/key-pair.ts';
import { readSigningRequest } from '../../crypto/x509/signing-request.ts';
import type { Reader } from '../../db/database.ts';
import {
  type CertificateVersionRow,
  findVersion,
} from '../../db/tables/certificates/certificate-versions.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import { findRenewalBefore, updateRenewal } from '../../db/tables/renewals/renewals.ts';
import { findCompromisedVersions } from '../../db/tables/replacements.ts';
import type { DatabaseContext, KeyringContext, SecretsContext } from '../contexts.ts';
import type { IssuanceKey } from '../orders/acme-order.ts';
import { openFor, renewalKeyOwner, sealFor } from '../sealed-secrets.ts';
import { nextKey } from '../versions/next-key.ts';
import { holdsKey, versionPrivateKey } from '../versions/versions.ts';
import type { Attempt } from './attempt.ts';

/** The key to certify, stored before anything is ordered. Throws `invalid_request` for the CSR of a revoked key. */
export async function keyToCertify(vault: SecretsContext, attempt: Attempt): Promise<IssuanceKey> {
  const { certificate } = attempt;
  if (certificate.csr === null) {
    const privateKey = await renewalKey(vault, attempt);
    return { privateKey, publicKey: publicKeyOf(privateKey), csr: undefined };
  }
  const { publicKey, der } = readSigningRequest(certificate.csr);
  if (await isRevokedKey(vault.db.reader, certificate, publicKey)) throw revokedKey();
  return { privateKey: undefined, publicKey, csr: der };
}

/**
 * The attempt with the order and the key of the renewal before it, if that failed while the CA was still issuing: the
 * CA may need longer than an attempt takes, for example for an approval.
 */
export async function withEarlierOrder(vault: SecretsContext, attempt: Attempt): Promise<Attempt> {
  const { renewal } = attempt;
  if (renewal.sealed_private_key !== null || renewal.order_url !== null) return attempt;
  const before = await findRenewalBefore(vault.db.reader, renewal);
  if (before?.status !== 'failed' || before.order_url === null) return attempt;
  if (before.issuer_id !== renewal.issuer_id) return attempt;
  const { order_url, order_domains, acme_account_id, sealed_private_key: sealed } = before;
  const key = sealed && openFor(vault, renewalKeyOwner(before.id), sealed);
  const taken = await attempt.write(async (writer) => {
    await updateRenewal(writer, before.id, { sealed_private_key: null, order_url: null });
    const changes = {
      sealed_private_key: key && (await sealFor(vault, writer, renewalKeyOwner(renewal.id), key)),
      ...{ order_url, order_domains, acme_account_id },
    };
    await updateRenewal(writer, renewal.id, changes);
    return changes;
  });
  return { ...attempt, renewal: { ...renewal, ...taken } };
}

/**
 * Whether the key (SPKI DER) is that of the current version, which was revoked, or of a version that is being replaced
 * because its key is compromised.
 */
export async function isRevokedKey(
  reader: Reader,
  { id, current_version: number }: Pick<CertificateRow, 'id' | 'current_version'>,
  publicKey: Buffer,
): Promise<boolean> {
  const version = number === null ? undefined : await findVersion(reader, id, number);
  if (version !== undefined && version.revoked_at !== null && isKeyOf(version, publicKey)) return true;
  for (const compromised of await findCompromisedVersions(reader, id)) {
    const old = await findVersion(reader, id, compromised);
    if (old !== undefined && isKeyOf(old, publicKey)) return true;
  }
  return false;
}

function isKeyOf({ certificate_pem }: CertificateVersionRow, publicKey: Buffer): boolean {
  const { publicKey: own } = new X509Certificate(certificate_pem);
  return own.export({ type: 'spki', format: 'der' }).equals(publicKey);
}

/** The error for the CSR of a revoked key. */
export function revokedKey(): Problem {
  return new Problem('invalid_request', {
    detail: 'The key of the CSR is that of the current version, which was revoked.',
    hint: 'Generate another key, and send a CSR with it.',
    errors: [{ path: 'csr', message: 'its key is that of a revoked version' }],
  });
}

/**
 * The private key of the next version: the stored one after a crash, the scheduled one, the current one if it is
 * reused, otherwise a new one.
 */
async function renewalKey(vault: SecretsContext, attempt: Attempt): Promise<Secret> {
  const { renewal, certificate } = attempt;
  const keyType = isKeyType(certificate.key_type) ? certificate.key_type : defaultKeyType;
  const owner = renewalKeyOwner(renewal.id);
  if (renewal.sealed_private_key !== null) {
    const stored = openFor(vault, owner, renewal.sealed_private_key);
    const isWanted = keyTypeOf(keyObject(stored)) === keyType;
    if (isWanted && !(await isRevokedKey(vault.db.reader, certificate, publicKeyOf(stored)))) return stored;
  }
  const key =
    (await nextKey(vault, certificate.id, keyType)) ??
    (certificate.reuse_key === 1 ? await currentKey(vault, certificate, keyType) : undefined) ??
    (await generatePrivateKey(keyType));
  // An order for another key is not resumed.
  await attempt.write(async (writer) => {
    const sealed_private_key = await sealFor(vault, writer, owner, key);
    await updateRenewal(writer, renewal.id, { sealed_private_key, order_url: null, order_domains: null });
  });
  return key;
}

/** The key of the current version, if the vault holds it, it has this type and is not to be replaced. */
async function currentKey(
  vault: DatabaseContext & KeyringContext,
  certificate: CertificateRow,
  keyType: string,
): Promise<Secret | undefined> {
  if (certificate.current_version === null) return undefined;
  const version = await findVersion(vault.db.reader, certificate.id, certificate.current_version);
  if (version === undefined || version.key_type !== keyType || !holdsKey(version)) return undefined;
  const key = versionPrivateKey(vault, version);
  return (await isRevokedKey(vault.db.reader, certificate, publicKeyOf(key))) ? undefined : key;
}
