/**
 * The tables as the queries see them. Times are UTC milliseconds, truth is 0 or 1, lists are JSON text; what is
 * `sealed_…` cannot be opened from here.
 */
import type { Generated } from 'kysely';

export type Bit = 0 | 1;

export type SettingsTable = { key: string; value: string | number | Buffer };

export type IssuersTable = { id: Generated<number>; name: string; type: string; created_at: number };

export type CaCertificatesTable = {
  id: Generated<number>;
  issuer_id: number;
  role: 'root' | 'intermediate';
  certificate: Buffer;
  sealed_private_key: Buffer;
  not_before: number;
  not_after: number;
  created_at: number;
};

export type CertificatesTable = {
  id: Generated<number>;
  name: string;
  domains: string;
  key_type: string;
  /** null for imported certificates. */
  issuer_id: number | null;
  auto_renew: Bit;
  reuse_key: Bit;
  /** The lifetime asked for, or null for the issuer's default. */
  lifetime: number | null;
  current_version: number | null;
  next_renewal_at: number | null;
  last_attempt_at: number | null;
  last_error: string | null;
  failed_attempts: Generated<number>;
  created_at: number;
};

export type CertificateVersionsTable = {
  id: Generated<number>;
  certificate_id: number;
  version: number;
  serial: string;
  issuer: string;
  subject: string;
  domains: string;
  key_type: string;
  fingerprint_sha256: string;
  not_before: number;
  not_after: number;
  created_at: number;
  source: 'acme' | 'local-ca' | 'import';
  certificate_pem: string;
  chain_pem: string;
  /** The private key's PEM. */
  sealed_private_key: Buffer;
  certificate_etag: string;
  chain_etag: string;
  fullchain_etag: string;
  private_key_etag: string;
};

export type RenewalStatus = 'queued' | 'running' | 'succeeded' | 'failed';

export type RenewalsTable = {
  id: Generated<number>;
  certificate_id: number;
  status: RenewalStatus;
  requested_by: string;
  requested_at: number;
  started_at: number | null;
  finished_at: number | null;
  /** How often a worker has taken it up. */
  claims: Generated<number>;
  lease_owner: string | null;
  lease_expires_at: number | null;
  /** PKCS#8 DER of the new version's key, there before anything is asked of the issuer. */
  sealed_private_key: Buffer | null;
  version: number | null;
  error: string | null;
};

export type ApiKeysTable = {
  id: Generated<number>;
  name: string;
  prefix: string;
  hash: Buffer;
  scopes: string;
  any_certificate: Bit;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  last_used_at: number | null;
  last_used_ip: string | null;
};

export type ApiKeyCertificatesTable = { api_key_id: number; certificate_id: number };

export type AuditEventsTable = {
  id: Generated<number>;
  at: number;
  actor: string;
  action: string;
  resource: string;
  detail: string;
  ip: string | null;
  request_id: string | null;
};

export type Schema = {
  settings: SettingsTable;
  issuers: IssuersTable;
  ca_certificates: CaCertificatesTable;
  certificates: CertificatesTable;
  certificate_versions: CertificateVersionsTable;
  renewals: RenewalsTable;
  api_keys: ApiKeysTable;
  api_key_certificates: ApiKeyCertificatesTable;
  audit_events: AuditEventsTable;
};
