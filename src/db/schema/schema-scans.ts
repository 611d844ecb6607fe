/** Scans of networks for TLS servers, and what they found. */
import type { Generated } from 'kysely';
import type { Json } from '../../base/json.ts';

export type ScansTable = {
  id: Generated<number>;
  /** In CIDR notation. */
  networks: Json<string[]>;
  ports: Json<number[]>;
  /** Connections per second. */
  rate: number;
  /** Between two runs, in milliseconds; null for a scan that runs once. */
  run_every: number | null;
  created_at: number;
  /** Addresses and ports of a run that are done, of so many. */
  position: Generated<number>;
  total: number;
  /** When the latest run began; null before the first. */
  started_at: number | null;
  /** When the latest run ended; null while it runs. */
  finished_at: number | null;
  /** When the next run begins, or since when the present one may go on; null for none. */
  due_at: number | null;
  /** Until when a process works on it; others leave it alone. */
  claimed_until: Generated<number>;
};

export type ScanFindingsTable = {
  id: Generated<number>;
  /** The scan that saw it last. */
  scan_id: number;
  host: string;
  port: number;
  starttls: string | null;
  /** The certificate of the vault that is served there; null for a certificate that the vault does not have. */
  certificate_id: number | null;
  version: number | null;
  fingerprint_sha256: string;
  issuer: string;
  names: Json<string[]>;
  not_before: number;
  not_after: number;
  /** What the server sent, in PEM; empty if that was too large to keep. */
  chain_pem: string;
  first_seen_at: number;
  seen_at: number;
};
