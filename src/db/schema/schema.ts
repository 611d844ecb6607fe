/**
 * The tables as queries see them. Times are UTC milliseconds, booleans are 0 or 1, lists are JSON text; `sealed_…`
 * columns cannot be decrypted here.
 */
import type { Generated } from 'kysely';
import type { Identifier } from '../../base/identifier.ts';
import type { Json } from '../../base/json.ts';
import type {
  AdministratorsTable,
  ApiKeyCertificatesTable,
  ApiKeysTable,
  AuthenticatorAppsTable,
  FactorUsesTable,
  OidcUsesTable,
  PasskeysTable,
  PendingChangesTable,
  RecoveryCodesTable,
  SessionsTable,
} from './schema-access.ts';
import type { AcmeServerTables } from './schema-acme-server.ts';
import type { AuditEventsTable, AuditKeysTable } from './schema-audit.ts';
import type {
  DeploymentsTable,
  DeployTargetCertificatesTable,
  DeployTargetsTable,
} from './schema-deployments.ts';
import type { EndpointsTable } from './schema-endpoints.ts';
import type { EnrollmentsTable } from './schema-enrollments.ts';
import type { DeletedCertificatesTable, DeletedVersionsTable, NextKeysTable } from './schema-kept-keys.ts';
import type { ObjectLabelsTable } from './schema-labels.ts';
import type { MasterKeysTable } from './schema-master-keys.ts';
import type { JobLeasesTable, NodesTable } from './schema-nodes.ts';
import type { NotificationTables } from './schema-notifications.ts';
import type {
  CaCertificatesTable,
  CaRequestsTable,
  CrlsTable,
  IssuanceProfilesTable,
  PrivateCasTable,
  RevokedCertificatesTable,
} from './schema-private-ca.ts';
import type { IssuanceHoldsTable, RenewalsTable } from './schema-renewals.ts';
import type { ReplacementCertificatesTable, ReplacementsTable } from './schema-replacements.ts';
import type { ScanFindingsTable, ScansTable } from './schema-scans.ts';

export type Bit = 0 | 1;

export type SettingsTable = { key: string; value: string | number | Buffer };

export type IssuersTable = { id: Generated<number>; name: string; type: string; created_at: number };

export type CertificatesTable = {
  id: Generated<number>;
  name: string;
  domains: Json<Identifier[]>;
  key_type: string;
  /** null for imported certificates. */
  issuer_id: number | null;
  auto_renew: Bit;
  reuse_key: Bit;
  /** The requested lifetime; null for the issuer's default. */
  lifetime: number | null;
  current_version: number | null;
  next_renewal_at: number | null;
  last_attempt_at: number | null;
  last_error: string | null;
  failed_attempts: Generated<number>;
  created_at: number;
  /** Neither renewed nor ordered while set. */
  disabled_at: number | null;
  /** When names or key type were changed; null again once a version has them. */
  changed_at: number | null;
  /** The issuer to use if the main one keeps failing and the certificate expires soon. */
  fallback_issuer_id: number | null;
  /** The profile of the CA; overrides that of an ACME issuer. Of a private CA, a row of `issuance_profiles`. */
  profile: string | null;
  /** The challenge type; null to choose by the configuration. */
  challenge: string | null;
  /** Retry-After of the issuer; the fallback's has its own column. */
  retry_after: number | null;
  fallback_retry_after: number | null;
  /** The CA's renewal window for the current version (RFC 9773), the chosen moment in it, and when to query again. */
  ari_window_start: number | null;
  ari_window_end: number | null;
  ari_renew_at: number | null;
  ari_check_at: number | null;
  /** What only the private CA issues: the usage, names and `CN=…` fields; null for the usual. */
  usage: Generated<string | null>;
  uris: Generated<Json<string[]> | null>;
  emails: Generated<Json<string[]> | null>;
  subject: Generated<Json<string[]> | null>;
  /** The CSR (PEM) that versions are issued for; null if the vault generates their keys. */
  csr: Generated<string | null>;
  /** The ACME client that orders its versions, and its names in one fixed form for finding it; null for none. */
  acme_client_id: Generated<number | null>;
  owned_names: Generated<string | null>;
  /** Sorted; null for none. The tag covers them with id and name (label-tags.ts). */
  labels: Generated<Json<string[]> | null>;
  labels_tag: Generated<Buffer | null>;
};

export type CertificateVersionsTable = {
  id: Generated<number>;
  certificate_id: number;
  version: number;
  serial: string;
  issuer: string;
  subject: string;
  domains: Json<Identifier[]>;
  key_type: string;
  fingerprint_sha256: string;
  not_before: number;
  not_after: number;
  created_at: number;
  source: 'acme' | 'local-ca' | 'import';
  certificate_pem: string;
  chain_pem: string;
  /** The private key as PEM; empty, as its entity tag is, if the client holds it. */
  sealed_private_key: Buffer;
  certificate_etag: string;
  chain_etag: string;
  fullchain_etag: string;
  private_key_etag: string;
  /** The ACME account and CA that issued it; null if not issued through ACME. */
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
  /** null until the CA has confirmed the registration. */
  account_url: string | null;
  email: string | null;
  eab_kid: string | null;
  status: AcmeAccountStatus;
  /** PKCS#8 DER. */
  sealed_private_key: Buffer;
  /** The new key of a rollover in progress. */
  sealed_next_private_key: Buffer | null;
  /** When that rollover began; null if an older vault began it. */
  rollover_at: number | null;
  created_at: number;
};

export type AcmeIssuersTable = {
  issuer_id: number;
  directory_url: string;
  email: string | null;
  eab_kid: string | null;
  sealed_eab_key: Buffer | null;
  /** PEM; replaces the public roots for this CA. */
  ca_pem: string | null;
  profile: string | null;
  preferred_chain: string | null;
  /** The accepted terms of service. */
  terms_of_service: string | null;
  account_id: number | null;
  /** No requests are sent to it before this time. */
  paused_until: number | null;
  pause_reason: string | null;
};

export type DnsProvidersTable = {
  id: Generated<number>;
  name: string;
  type: string;
  zones: Json<string[]>;
  sealed_secret: Buffer;
  created_at: number;
};

export type AcmeChallengesTable = {
  id: Generated<number>;
  /** null once the renewal is deleted. */
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

export type Schema = AcmeServerTables &
  NotificationTables & {
    settings: SettingsTable;
    master_keys: MasterKeysTable;
    issuers: IssuersTable;
    private_cas: PrivateCasTable;
    issuance_profiles: IssuanceProfilesTable;
    ca_certificates: CaCertificatesTable;
    ca_requests: CaRequestsTable;
    revoked_certificates: RevokedCertificatesTable;
    crls: CrlsTable;
    certificates: CertificatesTable;
    certificate_versions: CertificateVersionsTable;
    next_keys: NextKeysTable;
    deleted_certificates: DeletedCertificatesTable;
    deleted_versions: DeletedVersionsTable;
    renewals: RenewalsTable;
    issuance_holds: IssuanceHoldsTable;
    acme_accounts: AcmeAccountsTable;
    acme_issuers: AcmeIssuersTable;
    acme_challenges: AcmeChallengesTable;
    dns_providers: DnsProvidersTable;
    api_keys: ApiKeysTable;
    api_key_certificates: ApiKeyCertificatesTable;
    enrollments: EnrollmentsTable;
    replacements: ReplacementsTable;
    replacement_certificates: ReplacementCertificatesTable;
    administrators: AdministratorsTable;
    sessions: SessionsTable;
    pending_changes: PendingChangesTable;
    oidc_uses: OidcUsesTable;
    passkeys: PasskeysTable;
    authenticator_apps: AuthenticatorAppsTable;
    recovery_codes: RecoveryCodesTable;
    factor_uses: FactorUsesTable;
    object_labels: ObjectLabelsTable;
    deploy_targets: DeployTargetsTable;
    deploy_target_certificates: DeployTargetCertificatesTable;
    deployments: DeploymentsTable;
    endpoints: EndpointsTable;
    scans: ScansTable;
    scan_findings: ScanFindingsTable;
    audit_events: AuditEventsTable;
    audit_keys: AuditKeysTable;
    nodes: NodesTable;
    job_leases: JobLeasesTable;
  };
