/** Seals and opens the secrets in the database, each bound to its table, record and purpose. */
import type { Secret } from '../base/secret.ts';
import type { MasterKey } from '../crypto/secrets/master-key.ts';
import { type BlobOwner, open, SealError, seal, sealedBy } from '../crypto/secrets/sealing.ts';
import type { Reader, Writer } from '../db/database.ts';
import { currentMasterKey } from '../db/tables/master-keys.ts';
import type { KeyringContext, SealingContext } from './contexts.ts';

/** The private key of a version, sealed as the PEM that clients download. */
export function versionKeyOwner(certificateId: number, version: number): BlobOwner {
  return {
    table: 'certificate_versions',
    record: `${certificateId}/${version}`,
    purpose: 'seal: certificate private key',
  };
}

/** The key of a version that is being issued, sealed as PKCS#8 DER. */
export function renewalKeyOwner(renewalId: number): BlobOwner {
  return { table: 'renewals', record: String(renewalId), purpose: 'seal: certificate private key' };
}

/** The key that a certificate gets at its next renewal, sealed as PKCS#8 DER. */
export function nextKeyOwner(certificateId: number): BlobOwner {
  return { table: 'next_keys', record: `${certificateId}/next`, purpose: 'seal: certificate private key' };
}

/** The private key of a version of a deleted certificate, sealed as PEM. */
export function deletedKeyOwner(deletedCertificateId: number, version: number): BlobOwner {
  return {
    table: 'deleted_versions',
    record: `${deletedCertificateId}/${version}`,
    purpose: 'seal: certificate private key',
  };
}

/** The key of a private CA's root or intermediate, sealed as PKCS#8 DER. */
export function authorityKeyOwner(caCertificateId: number): BlobOwner {
  return {
    table: 'ca_certificates',
    record: String(caCertificateId),
    purpose: 'seal: certificate authority key',
  };
}

/** The key of a private CA that awaits its certificate from a company's CA, sealed as PKCS#8 DER. */
export function requestedAuthorityKeyOwner(issuerId: number): BlobOwner {
  return { table: 'ca_requests', record: String(issuerId), purpose: 'seal: certificate authority key' };
}

/** The key of an ACME account, sealed as PKCS#8 DER. */
export function accountKeyOwner(accountId: number): BlobOwner {
  return { table: 'acme_accounts', record: `${accountId}`, purpose: 'seal: acme account key' };
}

/** The key that an account changes to, sealed as PKCS#8 DER. */
export function nextAccountKeyOwner(accountId: number): BlobOwner {
  return { table: 'acme_accounts', record: `${accountId}/next`, purpose: 'seal: acme account key' };
}

/** The key that binds accounts to a customer of the CA (RFC 8555 §7.3.4), sealed as its bytes. */
export function externalAccountKeyOwner(issuerId: number): BlobOwner {
  return { table: 'acme_issuers', record: `${issuerId}`, purpose: 'seal: external account key' };
}

/** The key that binds accounts to an ACME client of the vault, sealed as its bytes. */
export function acmeClientKeyOwner(clientId: number): BlobOwner {
  return { table: 'acme_clients', record: `${clientId}`, purpose: 'seal: external account key' };
}

/** The credentials of a DNS provider, sealed as the text of their file. */
export function dnsSecretOwner(providerId: number): BlobOwner {
  return { table: 'dns_providers', record: `${providerId}`, purpose: 'seal: dns provider secret' };
}

/**
 * The key that signs checkpoints of the audit log, sealed as PKCS#8 DER for the public key (SPKI DER) that belongs to
 * it.
 */
export function auditKeyOwner(publicKey: Buffer): BlobOwner {
  return { table: 'audit_keys', record: publicKey.toString('hex'), purpose: 'seal: audit key' };
}

/** The settings of a notification channel with its credentials, sealed as JSON. */
export function channelSettingsOwner(channelId: number): BlobOwner {
  return {
    table: 'notification_channels',
    record: `${channelId}`,
    purpose: 'seal: notification channel settings',
  };
}

/** The settings of a deploy target with its credentials, sealed as JSON. */
export function targetSettingsOwner(targetId: number): BlobOwner {
  return { table: 'deploy_targets', record: `${targetId}`, purpose: 'seal: deploy target settings' };
}

/** The secret of an authenticator app (RFC 6238), sealed as its bytes. */
export function authenticatorSecretOwner(appId: number): BlobOwner {
  return {
    table: 'authenticator_apps',
    record: `${appId}`,
    purpose: 'seal: authenticator app secret',
  };
}

/**
 * Seals with the current master key of the database. `writer` must be the transaction that stores the blob, so that a
 * rotation cannot replace the key in between.
 */
export async function sealFor(
  vault: SealingContext,
  writer: Writer,
  owner: BlobOwner,
  plaintext: Secret,
): Promise<Buffer> {
  return seal(await currentKey(vault, writer), vault.world, owner, plaintext);
}

/** The current master key of the database. Throws SealError if the keyring does not have it. */
export async function currentKey({ keyring }: KeyringContext, reader: Reader): Promise<MasterKey> {
  const name = await currentMasterKey(reader);
  const key = name === undefined ? keyring.current : keyring.use(name);
  if (key === undefined) throw new SealError('other-key', `master key ${name} not found`);
  return key;
}

/** Opens a sealed blob. Throws SealError, shown as `internal`, if it is damaged or its master key is missing. */
export function openFor({ keyring }: KeyringContext, owner: BlobOwner, blob: Buffer): Secret {
  const name = sealedBy(blob);
  const key = keyring.find(name);
  if (key === undefined)
    throw new SealError('other-key', `sealed with master key ${name}, which is not loaded`);
  return open(key, owner, blob);
}
