/** The tables of who may do what: API keys, administrators and their sessions. */
import type { Generated } from 'kysely';
import type { Json } from '../../base/json.ts';
import type { Role } from '../../base/role.ts';
import type { Scope } from '../../base/scope.ts';

export type ApiKeysTable = {
  id: Generated<number>;
  name: string;
  prefix: string;
  hash: Buffer;
  scopes: Json<Scope[]>;
  any_certificate: 0 | 1;
  /** No entry allows any network. */
  allowed_networks: Json<string[]>;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  last_used_at: number | null;
  last_used_ip: string | null;
  /** The secret before the last rotation, valid until `previous_expires_at`; all three are null without one. */
  previous_prefix: Generated<string | null>;
  previous_hash: Generated<Buffer | null>;
  previous_expires_at: Generated<number | null>;
  /** The profiles that it may have certificates issued with, as `issuer/profile`; null for any. */
  profiles: Generated<Json<string[]> | null>;
  /** What it may administer; null for nothing. */
  role: Generated<Role | null>;
  /** The certificate (its id and name, also after its deletion) without which it does not work; null for none. */
  client_certificate_id: Generated<number | null>;
  client_certificate: Generated<string | null>;
  /** Labels of the key, of certificates that it may access, and of its reach; null for none. */
  labels: Generated<Json<string[]> | null>;
  certificate_labels: Generated<Json<string[]> | null>;
  reach: Generated<Json<string[]> | null>;
  /** The enrollment that created it, also after its deletion, and the SHA-256 of what the client chose for a retry. */
  enrollment_id: Generated<number | null>;
  enrollment_request: Generated<Buffer | null>;
  /** Covers all other columns except usage, and the allowlist (row-tags.ts). */
  tag: Generated<Buffer | null>;
};

export type ApiKeyCertificatesTable = { api_key_id: number; certificate_id: number };

export type AdministratorsTable = {
  id: Generated<number>;
  /** Unique regardless of case. */
  name: string;
  /** A PHC string; empty for people who sign in by OpenID Connect. */
  password_hash: string;
  created_at: number;
  last_signed_in_at: number | null;
  role: Generated<Role>;
  /** Who signs in by OpenID Connect: the provider and its subject, both exact, and no password; else both null. */
  oidc_issuer: Generated<string | null>;
  oidc_subject: Generated<string | null>;
  /** The digest of their second factors (audit/factor-digest.ts); null if they have none. */
  factors: Generated<Buffer | null>;
  /** The labels that confine what they may see and change; null for everything. */
  reach: Generated<Json<string[]> | null>;
  /** The profiles that they may have certificates issued with, as `issuer/profile`; null for any. */
  profiles: Generated<Json<string[]> | null>;
  tag: Generated<Buffer | null>;
};

export type PendingChangesTable = {
  id: Generated<number>;
  /** The id of the operation. */
  operation: string;
  /** What it changes, for people. */
  summary: string;
  /** SHA-256 of the request: who makes another one needs another approval. */
  digest: Buffer;
  /** The role that the operation needs, and so its approval. */
  role: Role;
  /** The name of the actor, as the audit log has it. */
  requested_by: string;
  requested_at: number;
  /** From then on it can be neither approved nor applied. */
  expires_at: number;
  decision: 'approved' | 'rejected' | null;
  decided_by: string | null;
  decided_at: number | null;
  /** When the approval was used; null while it was not. */
  applied_at: number | null;
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
  /** The session at the OpenID Connect provider that it began with. */
  oidc_sid: Generated<string | null>;
  tag: Generated<Buffer | null>;
};

export type OidcUsesTable = {
  /** SHA-256 of what was used. */
  id_hash: Buffer;
  expires_at: number;
  /** What a test sign-in found, sealed. */
  result: Generated<Buffer | null>;
};

/** Passkeys (WebAuthn credentials). */
export type PasskeysTable = {
  id: Generated<number>;
  administrator_id: number;
  name: string;
  /** Unique; the authenticator chose it. */
  credential_id: Buffer;
  /** A COSE key (RFC 9052 §7). */
  public_key: Buffer;
  /** The signature counter at the last use; 0 for authenticators that do not count. */
  sign_count: number;
  /** How browsers reach the authenticator. */
  transports: Json<string[]>;
  created_at: number;
  last_used_at: number | null;
};

/** Apps that show codes by time (RFC 6238), one per administrator. */
export type AuthenticatorAppsTable = {
  id: Generated<number>;
  administrator_id: number;
  sealed_secret: Buffer;
  /** The newest time step whose code was accepted: neither its code nor an older one is accepted again. */
  last_step: number;
  created_at: number;
  last_used_at: number | null;
};

/** Those that are not used yet. */
export type RecoveryCodesTable = {
  id: Generated<number>;
  administrator_id: number;
  /** An HMAC with a key that is not in the database. */
  code_hash: Buffer;
};

export type FactorUsesTable = {
  /** SHA-256 of a challenge or of a first step that was used. */
  id_hash: Buffer;
  expires_at: number;
};
