/** TLS servers whose certificate the vault looks at, and what it saw last. */
import type { Generated } from 'kysely';
import type { Json } from '../../base/json.ts';

/** Whose certificates clients of the endpoint trust. */
export type EndpointTrust = 'auto' | 'public' | 'private-ca' | 'bundle';

/** The states that need a person. */
export type UnhealthyState = 'unreachable' | 'unknown' | 'outdated' | 'untrusted' | 'expiring';

export type EndpointsTable = {
  id: Generated<number>;
  /** The certificate that is expected there; null for one that is only watched. */
  certificate_id: number | null;
  host: string;
  port: number;
  /** For the handshake (SNI); empty for none. */
  server_name: string;
  starttls: string | null;
  trust: EndpointTrust;
  /** The certificates of a bundle, PEM. */
  ca_pem: string | null;
  /** Between two checks, in milliseconds. */
  check_every: number;
  created_at: number;
  /** Counts changes of what is checked, so that a check of before stores nothing. */
  revision: Generated<number>;
  next_check_at: number;
  /** null before the first check. */
  checked_at: number | null;
  /** Failed checks in a row, and why the last of them failed. */
  failures: Generated<number>;
  error: string | null;
  /** The version of the certificate that was served; null for another certificate. */
  version: number | null;
  /** What was served when a check last succeeded. */
  fingerprint_sha256: string | null;
  serial: string | null;
  issuer: string | null;
  names: Json<string[]> | null;
  not_before: number | null;
  not_after: number | null;
  chain_complete: number | null;
  /** Why a client would reject it, apart from its expiry; null if none would. */
  problem: string | null;
  tls_version: string | null;
  ocsp_stapled: number | null;
  /** When the certificate or the outcome last changed. */
  changed_at: number | null;
  /** The state that was last notified; null for none of them. */
  notified_state: Generated<UnhealthyState | null>;
};
