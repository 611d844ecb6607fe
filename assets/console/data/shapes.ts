/** Types of API responses. Only the fields that the pages use; GET /api/v1/openapi.json has all of them. */

import type { Role } from '../../../src/base/role.ts';

export type Status = 'pending' | 'valid' | 'expiring' | 'expired' | 'not_yet_valid' | 'disabled';

/** Who holds the private key. */
export type KeyHolder = 'vault' | 'client';

export type Version = {
  readonly version: number;
  readonly serial: string;
  readonly issuer: string;
  readonly subject: string;
  readonly domains: readonly string[];
  readonly key_type: string;
  readonly fingerprint_sha256: string;
  readonly not_before: string;
  readonly not_after: string;
  readonly created_at: string;
  readonly source: 'acme' | 'local-ca' | 'import';
  readonly key_holder: KeyHolder;
  readonly current: boolean;
};

export type Artifact = { readonly file: string; readonly scope: string; readonly url: string };

export type Certificate = {
  readonly name: string;
  readonly domains: readonly string[];
  /** Such as `team=web`. */
  readonly labels: readonly string[];
  readonly key_type: string;
  readonly issuer: string | null;
  /** The ACME client that orders and renews it. */
  readonly owner: { readonly id: number; readonly name: string } | null;
  readonly status: Status;
  readonly auto_renew: boolean;
  readonly key_holder: KeyHolder;
  readonly created_at: string;
  readonly current_version: Version | null;
  readonly renewal: {
    readonly next_at: string | null;
    readonly last_error: string | null;
    readonly last_attempt_at: string | null;
  };
  readonly artifacts: readonly Artifact[];
};

export type Settings = {
  readonly name: string;
  readonly domains: readonly string[];
  readonly key_type: string;
  readonly issuer: string | null;
  readonly fallback_issuer: string | null;
  readonly lifetime: string | null;
  readonly profile: string | null;
  readonly challenge: string | null;
  readonly usage: 'server' | 'client' | 'both';
  readonly uris: readonly string[];
  readonly emails: readonly string[];
  readonly subject: readonly string[];
  readonly labels: readonly string[];
  readonly reuse_key: boolean;
  readonly csr: string | null;
  readonly public_key_pin: string | null;
  readonly next_public_key_pin: string | null;
  readonly auto_renew: boolean;
  readonly disabled: boolean;
  readonly failed_attempts: number;
  readonly retry_after: string | null;
  readonly renewal_window: { readonly start: string; readonly end: string } | null;
};

export type Renewal = {
  readonly id: number;
  readonly certificate: string;
  readonly status: 'queued' | 'running' | 'succeeded' | 'failed';
  readonly requested_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly version: number | null;
  readonly error: string | null;
  readonly issuer: string | null;
  readonly requested_by: string;
  readonly steps: readonly { readonly at: string; readonly text: string }[];
};

export type ApiKey = {
  readonly id: number;
  readonly name: string;
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly certificates: readonly string[];
  /** It may also access certificates with any of these labels. */
  readonly certificate_labels: readonly string[];
  /** Empty if the key is accepted from any network. */
  readonly allowed_networks: readonly string[];
  /** What it may administer. */
  readonly role: Role | null;
  /** The certificate that its client presents in TLS. */
  readonly client_certificate: string | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly last_used_at: string | null;
  readonly last_used_ip: string | null;
  readonly state: 'active' | 'expired' | 'revoked';
  /** Until when the secret before the last rotation is valid; null if there is none. */
  readonly previous_expires_at: string | null;
  /** Labels that confine what it administers; empty for everything. */
  readonly reach: readonly string[];
  /** Profiles that it has certificates issued with; empty for any. */
  readonly profiles: readonly string[];
  /** Its own labels. */
  readonly labels: readonly string[];
  /** The id of the enrollment that created it. */
  readonly enrollment: number | null;
};

export type DeploymentState = 'failing' | 'silent' | 'outdated' | 'current';

type DeploymentStep = { readonly result: 'ok' | 'failed'; readonly output: string | null };

/** A job of a client that installs a certificate, as it last reported. */
export type Deployment = {
  /** The client's id for it, unique per certificate. */
  readonly id: string;
  readonly certificate: string;
  readonly host: string;
  readonly job: string;
  readonly destination: string;
  readonly state: DeploymentState;
  /** The version that is installed; null for none. */
  readonly version: number | null;
  readonly current_version: number | null;
  readonly reload: DeploymentStep | null;
  readonly verify: DeploymentStep | null;
  /** Why the last run failed before the reload. */
  readonly error: string | null;
  readonly next_run_at: string | null;
  /** null if the vault installs. */
  readonly api_key: { readonly id: number; readonly name: string } | null;
  /** The target that the vault installs on; null if a client reports. */
  readonly deploy_target: string | null;
  readonly last_seen_at: string;
};

/** How far the current version of a certificate has come. */
export type Rollout = {
  readonly version: number | null;
  readonly issued_at: string | null;
  /** Without the silent ones. */
  readonly deployments: number;
  readonly fetched: number;
  readonly live: number;
  readonly silent: number;
};

export type EndpointState =
  | 'unreachable'
  | 'unchecked'
  | 'unknown'
  | 'outdated'
  | 'untrusted'
  | 'expiring'
  | 'current';

export type StartTls = 'smtp' | 'imap' | 'pop3' | 'ldap' | 'ftp' | 'xmpp' | 'postgres' | 'mysql';

export type EndpointTrust = 'auto' | 'public' | 'private-ca' | 'bundle';

/** A TLS server that the vault checks, with what it served last. */
export type Endpoint = {
  readonly id: number;
  /** `host:port` */
  readonly address: string;
  /** The certificate that is expected; null for one that is only watched. */
  readonly certificate: string | null;
  /** For the handshake; empty for none. */
  readonly server_name: string;
  readonly starttls: StartTls | null;
  readonly trust: EndpointTrust;
  /** The subjects of a bundle. */
  readonly ca_subjects: readonly string[];
  /** Such as `1h`. */
  readonly interval: string;
  readonly state: EndpointState;
  /** Why it is not current. */
  readonly reason: string | null;
  /** The version that is served; null for another certificate. */
  readonly version: number | null;
  readonly current_version: number | null;
  readonly outdated_since: string | null;
  readonly fingerprint_sha256: string | null;
  readonly issuer: string | null;
  readonly names: readonly string[];
  readonly not_before: string | null;
  readonly not_after: string | null;
  readonly tls_version: string | null;
  readonly chain_complete: boolean | null;
  readonly verifies: boolean | null;
  readonly ocsp_stapled: boolean | null;
  /** Why the last check failed. */
  readonly error: string | null;
  readonly created_at: string;
  readonly checked_at: string | null;
  readonly next_check_at: string;
  readonly changed_at: string | null;
};

export type AuditEvent = {
  readonly id: number;
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly resource: string;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly ip: string | null;
  readonly request_id: string | null;
};
