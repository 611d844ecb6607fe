/** The tables of the ACME server: who may order, the accounts and orders, and the nonces that were used. */
import type { Generated } from 'kysely';
import type { ChallengeType } from '../../base/challenge-type.ts';
import type { Identifier } from '../../base/identifier.ts';
import type { Json } from '../../base/json.ts';

export type AcmeClientsTable = {
  id: Generated<number>;
  /** Unique, also among revoked clients. */
  name: string;
  /** The key identifier of its external account binding (RFC 8555 §7.3.4). */
  kid: string;
  /** The MAC key of the binding, as its bytes. */
  sealed_hmac_key: Buffer;
  /** The patterns of the names that it may order, and the issuers that it may use. */
  domains: Json<string[]>;
  issuers: Json<string[]>;
  /** The profiles that it may use, as `issuer/profile`; null for any. */
  profiles: Json<string[]> | null;
  /** No entry allows any network. */
  allowed_networks: Generated<Json<string[]>>;
  /** The challenge types that validate its names; none trusts the binding. */
  validation: Generated<Json<Exclude<ChallengeType, 'dns-persist-01'>[]>>;
  /** New orders per hour; null for no limit. */
  rate: number | null;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  last_used_at: number | null;
  last_used_ip: string | null;
  /** Sorted; null for none. */
  labels: Generated<Json<string[]> | null>;
  /** Covers all other columns except usage (row-tags.ts). */
  tag: Generated<Buffer | null>;
};

/** An account at the directory of one issuer. */
export type AcmeClientAccountsTable = {
  id: Generated<number>;
  acme_client_id: number;
  issuer_id: number;
  /** Of its key (RFC 7638), unique within the issuer. */
  thumbprint: string;
  /** The public key. */
  jwk: Json<Readonly<Record<string, string>>>;
  contacts: Generated<Json<string[]>>;
  status: 'valid' | 'deactivated';
  created_at: number;
  /** Covers its id, client, issuer, key and status (row-tags.ts). */
  tag: Generated<Buffer | null>;
};

/** A challenge of an authorization. */
export type OrderChallenge = {
  readonly type: ChallengeType;
  readonly token: string;
  readonly status: 'pending' | 'processing' | 'valid' | 'invalid';
  /** UTC milliseconds. */
  readonly validated?: number;
  /** While it is processing, UTC milliseconds: when its validation is taken for lost. */
  readonly until?: number;
  /** A problem document. */
  readonly error?: Readonly<Record<string, unknown>>;
};

/** The authorization of an identifier of an order. */
export type OrderAuthorization = {
  /** Without the `*.` of a wildcard. */
  readonly identifier: Identifier;
  readonly wildcard: boolean;
  readonly status: 'pending' | 'valid' | 'invalid' | 'deactivated';
  /** UTC milliseconds. */
  readonly expires: number;
  readonly challenges: readonly OrderChallenge[];
};

/** A problem document (RFC 8555 §6.7). */
export type OrderProblem = { readonly type: string; readonly [member: string]: unknown };

export type AcmeClientOrderStatus = 'pending' | 'ready' | 'processing' | 'valid' | 'invalid';

export type AcmeClientOrdersTable = {
  id: Generated<number>;
  /** That of the account. */
  acme_client_id: number;
  account_id: number;
  status: AcmeClientOrderStatus;
  identifiers: Json<Identifier[]>;
  /** One for each identifier, in their order. */
  authorizations: Json<OrderAuthorization[]>;
  profile: string | null;
  /** The identifier (RFC 9773 §4.1) of the certificate that the order replaces. */
  replaces: string | null;
  not_before: number | null;
  not_after: number | null;
  created_at: number;
  expires_at: number;
  finished_at: number | null;
  /** DER. */
  csr: Buffer | null;
  /** What orders the certificate at another CA. */
  renewal_id: number | null;
  certificate_id: number | null;
  version: number | null;
  error: Json<OrderProblem> | null;
};

/** Nonces of requests that changed something. */
export type AcmeNoncesTable = { nonce: Buffer; expires_at: number };

export type AcmeServerTables = {
  acme_clients: AcmeClientsTable;
  acme_client_accounts: AcmeClientAccountsTable;
  acme_client_orders: AcmeClientOrdersTable;
  acme_nonces: AcmeNoncesTable;
};
