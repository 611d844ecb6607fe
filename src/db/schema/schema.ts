/**
 * The tables as the queries see them. Times are UTC milliseconds, truth is 0 or 1, lists are JSON text; what is
 * `sealed_…` cannot be opened from here.
 */
import type { Generated } from 'kysely';
import type { AuditEventsTable, AuditKeysTable } from './schema-audit.ts';
import type { MasterKeysTable } from './schema-master-keys.ts';
import type { NotificationTables } from './schema-notifications.ts';
import type { IssuanceHoldsTable, RenewalsTable } from './schema-renewals.ts';

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
  /** Neither renewed nor ordered while set. */
  disabled_at: number | null;
  /** When names or type of key were changed; null again once a version has them. */
  changed_at: number | null;
  /** Who is asked when the issuer keeps failing and the end is near. */
  fallback_issuer_id: number | null;
  /** The CA's profile, in place of the issuer's. */
  profile: string | null;
  /** The challenge type to use, or null to choose by what is configured. */
  challenge: string | null;
  /** Retry-After of the issuer; the fallback's has its own column. */
  retry_after: number | null;
  fallback_retry_after: number | null;
  /** The CA's renewal window for the current version (RFC 9773), the moment chosen in it, and when to ask again. */
  ari_window_start: number | null;
  ari_window_end: number | null;
  ari_renew_at: number | null;
  ari_check_at: number | null;
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
  /** Whose order it came from, and from which CA; null where it was not ACME. */
  acme_account_id: number | null;
  directory_url: string | null;
  revoked_at: number | null;
};

export type AcmeAccountStatus = 'registering' | 'valid' | 'deactivated' | 'gone';

export type AcmeAccountsTable = {
  id: Generated<number>;
  /** The name of the issuer that registered it. */
  issuer: string;
  directory_url: string;
  /** null until the CA has answered the registration. */
  account_url: string | null;
  email: string | null;
  eab_kid: string | null;
  status: AcmeAccountStatus;
  /** PKCS#8 DER. */
  sealed_private_key: Buffer;
  /** The key that a rollover under way changes to. */
  sealed_next_private_key: Buffer | null;
  /** When that rollover began; null for one that an older vault began. */
  rollover_at: number | null;
  created_at: number;
};

export type AcmeIssuersTable = {
  issuer_id: number;
  directory_url: string;
  email: string | null;
  eab_kid: string | null;
  sealed_eab_key: Buffer | null;
  /** PEM, trusted for this CA in place of the public roots. */
  ca_pem: string | null;
  profile: string | null;
  preferred_chain: string | null;
  /** The terms that were accepted. */
  terms_of_service: string | null;
  account_id: number | null;
  /** Nothing is asked of it before this. */
  paused_until: number | null;
  pause_reason: string | null;
};

export type DnsProvidersTable = {
  id: Generated<number>;
  name: string;
  type: string;
  zones: string;
  sealed_secret: Buffer;
  created_at: number;
};

export type AcmeChallengesTable = {
  id: Generated<number>;
  /** null once the renewal is gone. */
  renewal_id: number | null;
  /** Without `*.`. */
  identifier: string;
  type: string;
  token: string | null;
  key_authorization: string;
  dns_provider_id: number | null;
  record_name: string | null;
  record_zone: string | null;
  record_value: string | null;
  created_at: number;
};

export type ApiKeysTable = {
  id: Generated<number>;
  name: string;
  prefix: string;
  hash: Buffer;
  scopes: string;
  any_certificate: Bit;
  /** None for anywhere. */
  allowed_networks: string;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  last_used_at: number | null;
  last_used_ip: string | null;
  /** Over all of it but its use, with its allowlist (row-tags.ts). */
  tag: Generated<Buffer | null>;
};

export type ApiKeyCertificatesTable = { api_key_id: number; certificate_id: number };

export type AdministratorsTable = {
  id: Generated<number>;
  /** Whatever its case, it is taken once. */
  name: string;
  /** A PHC string. */
  password_hash: string;
  created_at: number;
  last_signed_in_at: number | null;
  tag: Generated<Buffer | null>;
};

export type SessionsTable = {
  id: Generated<number>;
  administrator_id: number;
  /** SHA-256 of the id in the session's token. */
  token_hash: Buffer;
  created_at: number;
  expires_at: number;
  last_used_at: number;
  ip: string | null;
  user_agent: string | null;
  tag: Generated<Buffer | null>;
};

export type Schema = NotificationTables & {
  settings: SettingsTable;
  master_keys: MasterKeysTable;
  issuers: IssuersTable;
  ca_certificates: CaCertificatesTable;
  certificates: CertificatesTable;
  certificate_versions: CertificateVersionsTable;
  renewals: RenewalsTable;
  issuance_holds: IssuanceHoldsTable;
  acme_accounts: AcmeAccountsTable;
  acme_issuers: AcmeIssuersTable;
  acme_challenges: AcmeChallengesTable;
  dns_providers: DnsProvidersTable;
  api_keys: ApiKeysTable;
  api_key_certificates: ApiKeyCertificatesTable;
  administrators: AdministratorsTable;
  sessions: SessionsTable;
  audit_events: AuditEventsTable;
  audit_keys: AuditKeysTable;
};
