/** How secrets rest in the database: what each is sealed for, and what is sealed. */
import type { Secret } from '../base/secret.ts';
import { type BlobOwner, open, seal } from '../crypto/sealing.ts';
import type { Vault } from './vault.ts';

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

export function sealFor({ masterKey, world }: Vault, owner: BlobOwner, plaintext: Secret): Buffer {
  return seal(masterKey, world, owner, plaintext);
}

/** Throws SealError, which is shown as `internal`, where the blob is damaged or was sealed by another key. */
export function openFor({ masterKey }: Vault, owner: BlobOwner, blob: Buffer): Secret {
  return open(masterKey, owner, blob);
}
