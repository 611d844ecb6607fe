/** All tables with their keys and the kinds of their columns; a table stands after those that its rows refer to. */
import type { Schema } from './schema.ts';

/** `value` is a text, a number or bytes, and says which itself. */
export type ColumnKind = 'integer' | 'text' | 'bytes' | 'value';

export type TableShape = {
  /** The columns of its primary key, in order. */
  readonly key: readonly string[];
  readonly columns: ReadonlyMap<string, ColumnKind>;
};

/** About processes that run and requests of the last minutes, not about the vault: never copied. */
export const passingTables = ['nodes', 'job_leases', 'acme_nonces', 'oidc_uses', 'factor_uses'] as const;

/** A table that is copied. */
export type KeptTable = Exclude<keyof Schema, (typeof passingTables)[number]>;

const shapes: Record<KeptTable, TableShape> = {
  settings: table('key', { text: 'key', value: 'value' }),
  master_keys: table('id', {
    text: 'id state',
    integer: 'since retired_at',
  }),
  issuers: table('id', {
    integer: 'id created_at',
    text: 'name type',
  }),
  private_cas: table('issuer_id', {
    integer: 'issuer_id path_length lifetime',
    text: 'common_name permit_domains permit_ips key_type',
  }),
  issuance_profiles: table('issuer_id name', {
    integer: 'issuer_id lifetime max_lifetime created_at',
    text: 'name usage key_types subject name_types permit_domains permit_ips',
  }),
  ca_certificates: table('id', {
    integer: 'id issuer_id not_before not_after created_at generation is_external signer_id issued_until',
    text: 'role constraints',
    bytes: 'certificate sealed_private_key upper_chain cross_certificate',
  }),
  ca_requests: table('issuer_id', {
    integer: 'issuer_id created_at',
    bytes: 'csr sealed_private_key',
  }),
  revoked_certificates: table('id', {
    integer: 'id ca_certificate_id reason revoked_at not_after',
    text: 'serial',
  }),
  crls: table('ca_certificate_id', {
    integer: 'ca_certificate_id revocations covered number signed_at next_update',
    bytes: 'crl',
  }),
  acme_accounts: table('id', {
    integer: 'id created_at rollover_at',
    text: 'issuer directory_url account_url email eab_kid status',
    bytes: 'sealed_private_key sealed_next_private_key',
  }),
  acme_issuers: table('issuer_id', {
    integer: 'issuer_id account_id paused_until',
    text: 'directory_url email eab_kid ca_pem profile preferred_chain terms_of_service pause_reason',
    bytes: 'sealed_eab_key',
  }),
  acme_clients: table('id', {
    integer: 'id rate created_at expires_at revoked_at last_used_at',
    text: 'name kid domains issuers profiles allowed_networks validation last_used_ip labels',
    bytes: 'sealed_hmac_key tag',
  }),
  certificates: table('id', {
    integer:
      'id issuer_id auto_renew reuse_key lifetime current_version next_renewal_at last_attempt_at failed_attempts created_at disabled_at changed_at fallback_issuer_id retry_after ari_window_start ari_window_end ari_renew_at ari_check_at fallback_retry_after acme_client_id',
    text: 'name domains key_type last_error profile challenge usage uris emails subject csr owned_names labels',
    bytes: 'labels_tag',
  }),
  certificate_versions: table('id', {
    integer: 'id certificate_id version not_before not_after created_at acme_account_id revoked_at',
    text: 'serial issuer subject domains key_type fingerprint_sha256 source certificate_pem chain_pem certificate_etag chain_etag fullchain_etag private_key_etag directory_url',
    bytes: 'sealed_private_key',
  }),
  next_keys: table('certificate_id', {
    integer: 'certificate_id created_at',
    bytes: 'sealed_private_key',
    text: 'key_type pin',
  }),
  deleted_certificates: table('id', {
    integer: 'id deleted_at certificate_id',
    text: 'name deleted_by facts',
  }),
  deleted_versions: table('id', {
    integer: 'id deleted_certificate_id version',
    text: 'facts',
    bytes: 'sealed_private_key',
  }),
  renewals: table('id', {
    integer:
      'id certificate_id requested_at started_at finished_at claims lease_expires_at version issuer_id acme_account_id urgent_at dns_lane held_until limited',
    text: 'status requested_by lease_owner error order_url order_domains steps hold_reason name_set',
    bytes: 'sealed_private_key',
  }),
  acme_client_accounts: table('id', {
    integer: 'id acme_client_id issuer_id created_at',
    text: 'thumbprint jwk contacts status',
    bytes: 'tag',
  }),
  acme_client_orders: table('id', {
    integer:
      'id acme_client_id account_id not_before not_after created_at expires_at finished_at renewal_id certificate_id version',
    text: 'status identifiers authorizations profile replaces error',
    bytes: 'csr',
  }),
  issuance_holds: table('directory_url scope subject', {
    text: 'directory_url scope subject reason',
    integer: 'until',
  }),
  dns_providers: table('id', {
    integer: 'id created_at',
    text: 'name type zones',
    bytes: 'sealed_secret',
  }),
  acme_challenges: table('id', {
    integer: 'id renewal_id dns_provider_id created_at',
    text: 'identifier type token key_authorization record_name record_zone record_value',
  }),
  api_keys: table('id', {
    integer:
      'id any_certificate created_at expires_at revoked_at last_used_at previous_expires_at client_certificate_id enrollment_id',
    text: 'name prefix scopes last_used_ip allowed_networks previous_prefix profiles role client_certificate labels certificate_labels reach',
    bytes: 'hash tag previous_hash enrollment_request',
  }),
  api_key_certificates: table('api_key_id certificate_id', {
    integer: 'api_key_id certificate_id',
  }),
  enrollments: table('id', {
    integer:
      'id any_certificate bind_address key_expires_at max_uses uses created_at expires_at revoked_at last_used_at',
    text: 'name prefix scopes certificates certificate_labels allowed_networks labels created_by',
    bytes: 'hash tag',
  }),
  deploy_targets: table('id', {
    integer: 'id created_at changed_at',
    text: 'name type host',
    bytes: 'sealed_settings',
  }),
  deploy_target_certificates: table('id', {
    integer: 'id deploy_target_id certificate_id attempts due_at',
    text: 'destination remote_id error',
  }),
  deployments: table('id', {
    integer:
      'id certificate_id api_key_id deploy_target_id version next_run_at created_at changed_at last_seen_at silent_at',
    text: 'name host job destination fingerprint_sha256 reload reload_output verify verify_output error client_version notified_state',
  }),
  endpoints: table('id', {
    integer:
      'id certificate_id port check_every created_at revision next_check_at checked_at failures version not_before not_after chain_complete ocsp_stapled changed_at',
    text: 'host server_name starttls trust ca_pem error fingerprint_sha256 serial issuer names problem tls_version notified_state',
  }),
  replacements: table('id', {
    integer: 'id created_at deadline_at finished_at',
    text: 'reason issuer labels certificate created_by canceled_by',
  }),
  replacement_certificates: table('id', {
    integer:
      'id replacement_id certificate_id old_version new_version renewal_id live places attempts next_at changed_at finished_at',
    text: 'name state error',
  }),
  scans: table('id', {
    integer: 'id rate run_every created_at position total started_at finished_at due_at claimed_until',
    text: 'networks ports',
  }),
  scan_findings: table('id', {
    integer: 'id scan_id port certificate_id version not_before not_after first_seen_at seen_at',
    text: 'host starttls fingerprint_sha256 issuer names chain_pem',
  }),
  administrators: table('id', {
    integer: 'id created_at last_signed_in_at',
    text: 'name password_hash role oidc_issuer oidc_subject reach profiles',
    bytes: 'tag factors',
  }),
  sessions: table('id', {
    integer: 'id administrator_id created_at expires_at last_used_at',
    bytes: 'token_hash tag',
    text: 'ip user_agent oidc_sid',
  }),
  passkeys: table('id', {
    integer: 'id administrator_id sign_count created_at last_used_at',
    text: 'name transports',
    bytes: 'credential_id public_key',
  }),
  authenticator_apps: table('id', {
    integer: 'id administrator_id last_step created_at last_used_at',
    bytes: 'sealed_secret',
  }),
  recovery_codes: table('id', {
    integer: 'id administrator_id',
    bytes: 'code_hash',
  }),
  pending_changes: table('id', {
    integer: 'id requested_at expires_at decided_at applied_at',
    text: 'operation summary role requested_by decision decided_by',
    bytes: 'digest tag',
  }),
  notification_channels: table('id', {
    integer: 'id digest_days next_digest_at last_digest_at created_at disabled_at',
    text: 'name type target events certificates digest_at disabled_reason labels certificate_labels',
    bytes: 'sealed_settings',
  }),
  object_labels: table('kind label object_id', {
    text: 'kind label',
    integer: 'object_id',
  }),
  notifications: table('id', {
    integer: 'id at',
    text: 'message_id event about data',
  }),
  notification_deliveries: table('id', {
    integer:
      'id notification_id channel_id attempts queued_at next_attempt_at expires_at lease_expires_at last_attempt_at ended_at',
    text: 'status lease_owner error',
  }),
  notification_alarms: table('id', {
    integer: 'id certificate_id api_key_id level opened_at told_at times_told',
    text: 'event',
  }),
  audit_keys: table('id', {
    integer: 'id created_at',
    bytes: 'public_key sealed_private_key',
  }),
  audit_events: table('id', {
    integer: 'id at',
    text: 'actor action resource detail ip request_id',
    bytes: 'link',
  }),
};

export const keptTables = Object.entries(shapes) as [KeptTable, TableShape][];

/** The tables that number their rows themselves, and never use a number twice. */
export const numberedTables = keptTables
  .filter(([, { key, columns }]) => key.join() === 'id' && columns.get('id') === 'integer')
  .map(([name]) => name);

/** `key` and each list name columns, separated by spaces. */
function table(key: string, kinds: Partial<Record<ColumnKind, string>>): TableShape {
  const columns = Object.entries(kinds).flatMap(([kind, names]) =>
    names.split(' ').map((name) => [name, kind as ColumnKind] as const),
  );
  return { key: key.split(' '), columns: new Map(columns) };
}
