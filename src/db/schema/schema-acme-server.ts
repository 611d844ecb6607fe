/** The tables of the ACME server: who may order, the accounts and orders, and the nonces that were used. */
import type { Generated } from 'kysely';

export type AcmeClientsTable = {
  id: Generated<number>;
  /** Unique, also among revoked clients. */
  name: string;
  /** The key identifier of its external account binding (RFC 8555 §7.3.4). */
  kid: string;
  /** The MAC key of the binding, as its bytes. */
  sealed_hmac_key: Buffer;
  /** JSON lists: the patterns of the names that it may order, and the issuers that it may use. */
  domains: string;
  issuers: string;
  /** The profiles that it may use, as a JSON list of `issuer/profile`; null for any. */
  profiles: string | null;
  /** No entry allows any network. */
  allowed_networks: Generated<string>;
  /** The challenge types that validate its names, as a JSON list; none trusts the binding. */
  validation: Generated<string>;
  /** New orders per hour; null for no limit. */
  rate: number | null;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  last_used_at: number | null;
  last_used_ip: string | null;
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
  /** The public key as JSON. */
  jwk: string;
  contacts: Generated<string>;
  status: 'valid' | 'deactivated';
  created_at: number;
  /** Covers its id, client, issuer, key and status (row-tags.ts). */
  tag: Generated<Buffer | null>;
};

export type AcmeClientOrderStatus = 'pending' | 'ready' | 'processing' | 'valid' | 'invalid';

export type AcmeClientOrdersTable = {
  id: Generated<number>;
  /** That of the account. */
  acme_client_id: number;
  account_id: number;
  status: AcmeClientOrderStatus;
  /** A JSON list of names and addresses. */
  identifiers: string;
  /** The authorizations as JSON, one for each identifier, in their order. */
  authorizations: string;
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
  /** A problem document as JSON. */
  error: string | null;
};

/** Nonces of requests that changed something. */
export type AcmeNoncesTable = { nonce: Buffer; expires_at: number };

export type AcmeServerTables = {
  acme_clients: AcmeClientsTable;
  acme_client_accounts: AcmeClientAccountsTable;
  acme_client_orders: AcmeClientOrdersTable;
  acme_nonces: AcmeNoncesTable;
};
