/** How secrets rest in the database: what each is sealed for, and what is sealed. */
import type { Secret } from '../base/secret.ts';
import type { MasterKey } from '../crypto/master-key.ts';
import { type BlobOwner, open, SealError, seal, sealedBy } from '../crypto/sealing.ts';
import type { Reader, Writer } from '../db/database.ts';
import { currentMasterKey } from '../db/tables/master-keys.ts';
import type { KeyringContext, SealingContext } from './contexts.ts';

/** A version's key, sealed as the PEM that is handed out. */
export function versionKeyOwner(certificateId: number, version: number): BlobOwner {
  return {
    table: 'certificate_versions',
    record: `${certificateId}/${version}`,
    purpose: 'seal: certificate private key',
  };
}

/** The key of a version that is yet to be issued, sealed as PKCS#8 DER. */
export function renewalKeyOwner(renewalId: number): BlobOwner {
  return { table: 'renewals', record: String(renewalId), purpose: 'seal: certificate private key' };
}

/** The key of a private CA's root or intermediate, sealed as PKCS#8 DER. */
export function authorityKeyOwner(caCertificateId: number): BlobOwner {
  return {
    table: 'ca_certificates',
    record: String(caCertificateId),
    purpose: 'seal: certificate authority key',
  };
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

/** The credentials of a DNS provider, sealed as the text of the file they came in. */
export function dnsSecretOwner(providerId: number): BlobOwner {
  return { table: 'dns_providers', record: `${providerId}`, purpose: 'seal: dns provider secret' };
}

/** The key that signs checkpoints of the audit log, sealed as PKCS#8 DER for the public key (SPKI DER) that belongs to it. */
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

/**
 * Seals with the key that the database names as the current one. `writer` is the transaction that stores the blob: no
 * rotation can come in between, so that nothing is ever sealed by a key that is on its way out.
 */
export async function sealFor(
  vault: SealingContext,
  writer: Writer,
  owner: BlobOwner,
  plaintext: Secret,
): Promise<Buffer> {
  return seal(await currentKey(vault, writer), vault.world, owner, plaintext);
}

/** The key that the database names as the current one. Throws SealError where it cannot be found. */
export async function currentKey({ keyring }: KeyringContext, reader: Reader): Promise<MasterKey> {
  const name = await currentMasterKey(reader);
  const key = name === undefined ? keyring.current : keyring.use(name);
  if (key === undefined) throw new SealError('other-key', `the master key ${name} cannot be found`);
  return key;
}

/** Throws SealError, which is shown as `internal`, where the blob is damaged or its master key cannot be found. */
export function openFor({ keyring }: KeyringContext, owner: BlobOwner, blob: Buffer): Secret {
  const name = sealedBy(blob);
  const key = keyring.find(name);
  if (key === undefined) throw new SealError('other-key', `sealed by master key ${name}, which is not here`);
  return open(key, owner, blob);
}
