/** The table of enrollment tokens, which machines exchange for API keys of their own. */
import type { Generated } from 'kysely';
import type { Json } from '../../base/json.ts';
import type { Scope } from '../../base/scope.ts';

export type EnrollmentsTable = {
  id: Generated<number>;
  name: string;
  /** The public part of the token, and the SHA-256 of the whole. */
  prefix: string;
  hash: Buffer;
  /** What the keys may do, as in `api_keys`; the certificates are pairs of their ids and names. */
  scopes: Json<Scope[]>;
  any_certificate: 0 | 1;
  certificates: Json<[id: number, name: string][]>;
  certificate_labels: Json<string[]> | null;
  /** Where the token and the keys work from; no entry allows any network. */
  allowed_networks: Json<string[]>;
  /** Whether a key works only from the address that the token was exchanged at. */
  bind_address: 0 | 1;
  /** Labels of the enrollment and of the keys; null for none. */
  labels: Json<string[]> | null;
  /** When the keys expire; null for never. */
  key_expires_at: number | null;
  max_uses: number;
  uses: Generated<number>;
  /** The name of the actor, as the audit log has it. */
  created_by: string;
  created_at: number;
  expires_at: number;
  revoked_at: number | null;
  last_used_at: number | null;
  /** Covers all other columns except `created_by` and times of creation and use (enrollment-tags.ts). */
  tag: Generated<Buffer | null>;
};
