/** Types of API responses for the administration pages. Only the fields that the pages use. */
import type { Role } from '../../../src/base/role.ts';
import type { ApiKey, Certificate } from './shapes.ts';

/** The response to creating a key, the only one that contains the key itself. */
export type CreatedApiKey = ApiKey & { readonly key: string };

/** A token that machines exchange for API keys of their own. */
export type Enrollment = {
  readonly id: number;
  readonly name: string;
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly certificates: readonly string[];
  readonly certificate_labels: readonly string[];
  readonly allowed_networks: readonly string[];
  /** Whether each key works only from the address that its machine enrolled from. */
  readonly bind_address: boolean;
  readonly labels: readonly string[];
  readonly max_uses: number;
  readonly uses: number;
  readonly created_by: string;
  readonly created_at: string;
  readonly expires_at: string;
  readonly key_expires_at: string | null;
  readonly revoked_at: string | null;
  readonly last_used_at: string | null;
  readonly state: 'active' | 'used_up' | 'expired' | 'revoked';
};

/** The response to creating an enrollment, the only one that contains its token. */
export type CreatedEnrollment = Enrollment & { readonly token: string };

/** A program that orders certificates from the vault by ACME. */
export type AcmeClient = {
  readonly id: number;
  readonly name: string;
  readonly kid: string;
  readonly domains: readonly string[];
  readonly issuers: readonly string[];
  readonly profiles: readonly string[];
  readonly allowed_networks: readonly string[];
  readonly validation: readonly string[];
  readonly rate: number | null;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly last_used_ip: string | null;
  readonly state: 'active' | 'expired' | 'revoked';
};

/** The response to creating or rotating a client, the only one that contains its HMAC key. */
export type CreatedAcmeClient = AcmeClient & {
  readonly hmac_key: string;
  readonly directories: readonly { readonly issuer: string; readonly url: string }[];
};

export type Issuer = {
  readonly name: string;
  readonly type: string;
  readonly directory_url: string | null;
  readonly email: string | null;
  readonly eab_kid: string | null;
  readonly profile: string | null;
  readonly preferred_chain: string | null;
  readonly ca_pem: string | null;
  readonly terms_of_service: string | null;
  readonly account: string | null;
  readonly paused_until: string | null;
  readonly pause_reason: string | null;
  readonly private_ca: PrivateCaSettings | null;
  readonly created_at: string;
};

export type PrivateCaSettings = {
  readonly common_name: string | null;
  readonly permit_domains: readonly string[];
  readonly permit_ips: readonly string[];
  readonly path_length: number;
  readonly lifetime: string;
  readonly key_type: string;
};

/** The result of testing an issuer. */
export type IssuerOffer = {
  readonly directory_url: string;
  readonly profiles: readonly { readonly name: string; readonly description: string }[];
  readonly terms_of_service: string | null;
  readonly external_account_required: boolean;
  readonly renewal_information: boolean;
};

export type DnsProvider = {
  readonly name: string;
  readonly type: string;
  readonly zones: readonly string[];
  readonly created_at: string;
};

export type NotificationChannel = {
  readonly name: string;
  readonly type: string;
  readonly target: string;
  readonly events: readonly string[];
  readonly certificates: readonly string[];
  readonly digest_at: string | null;
  readonly digest_days: number;
  readonly created_at: string;
  readonly disabled_at: string | null;
  readonly disabled_reason: string | null;
  readonly waiting: number;
  readonly last_delivery: {
    readonly at: string;
    readonly event: string;
    readonly status: string;
    readonly error: string | null;
  } | null;
};

/** The response to creating or changing a channel; `secret` is set if the vault generated a signing secret. */
export type ChangedChannel = NotificationChannel & { readonly secret: string | null };

export type NotificationDelivery = {
  readonly id: number;
  readonly channel: string;
  readonly event: string;
  readonly about: string | null;
  readonly status: string;
  readonly attempts: number;
  readonly queued_at: string;
  readonly last_attempt_at: string | null;
  readonly next_attempt_at: string | null;
  readonly ended_at: string | null;
  readonly error: string | null;
};

export type Step = { readonly at: string; readonly text: string };

export type AcmeAccount = {
  readonly id: string;
  readonly issuer: string;
  readonly directory_url: string;
  readonly email: string | null;
  readonly status: 'registering' | 'valid' | 'deactivated' | 'gone';
  readonly current: boolean;
  readonly created_at: string;
};

export type DeletedCertificate = {
  readonly id: number;
  readonly name: string;
  readonly domains: readonly string[];
  readonly issuer: string | null;
  readonly deleted_at: string;
  readonly deleted_by: string;
  readonly api_keys: readonly { readonly id: number; readonly name: string }[];
};

export type Administrator = {
  readonly name: string;
  readonly role: Role;
  /** Labels that confine what they may do; empty for everything. */
  readonly reach: readonly string[];
  /** Profiles (`issuer/profile`) that they may have certificates issued with; empty for any. */
  readonly profiles: readonly string[];
  readonly sign_in: 'password' | 'oidc';
  readonly created_at: string;
  readonly last_signed_in_at: string | null;
  readonly has_second_factor: boolean;
};

export type Passkey = {
  readonly id: number;
  readonly name: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
};

/** Those of the signed-in person. */
export type SecondFactors = {
  readonly passkeys: readonly Passkey[];
  readonly totp: { readonly created_at: string; readonly last_used_at: string | null } | null;
  readonly recovery_codes: number;
  /** The address at which passkeys work. */
  readonly passkeys_at: string | null;
  readonly required: boolean;
};

/** A change that waits for the approval of a second administrator, or did. */
export type PendingChange = {
  readonly id: number;
  readonly summary: string;
  readonly state: 'pending' | 'approved' | 'rejected' | 'applied' | 'expired';
  readonly role: Role;
  readonly requested_by: string;
  readonly requested_at: string;
  readonly expires_at: string;
  readonly decided_by: string | null;
};

export type CertificateFacts = {
  readonly subject: string;
  readonly issuer: string;
  readonly serial: string;
  readonly domains: readonly string[];
  readonly key_type: string;
  readonly fingerprint_sha256: string;
  readonly not_before: string;
  readonly not_after: string;
};

export type ImportPreview = {
  readonly certificate: CertificateFacts;
  readonly chain: readonly CertificateFacts[];
  readonly warnings: readonly string[];
  readonly suggested_name: string | null;
};

export type Imported = {
  /** Whether a version was added; not if the current one holds the same files. */
  readonly changed: boolean;
  readonly certificate: Certificate;
  readonly version: number;
  readonly warnings: readonly string[];
};

export type About = {
  readonly version: string;
  readonly status: 'ready' | 'not_ready';
  readonly checks: Readonly<Record<string, 'ok' | 'failed'>>;
  readonly counts: {
    readonly certificates: Readonly<Record<string, number>>;
    readonly api_keys: number;
    readonly issuers: number;
    readonly dns_providers: number;
    readonly acme_accounts: number;
  };
  /** Missing if the vault does not report backups. */
  readonly backup?: { readonly last_at: string | null };
  /** The vault's own HTTPS certificate; null if it serves plain HTTP, missing if the vault does not report it. */
  readonly tls?: OwnTls | null;
};

export type OwnTls = {
  readonly source: 'certificate' | 'files';
  readonly certificate: string | null;
  readonly publicly_trusted: boolean;
  readonly pin: string;
};
