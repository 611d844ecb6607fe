/** Scans of networks and the TLS servers that they found. */
import type { StartTls } from './shapes.ts';

export type Scan = {
  readonly id: number;
  readonly networks: readonly string[];
  readonly ports: readonly number[];
  /** Between two runs; null for a scan that runs once. */
  readonly interval: string | null;
  readonly state: 'waiting' | 'running' | 'finished';
  readonly done: number;
  readonly total: number;
  readonly found: number;
  readonly finished_at: string | null;
  readonly next_run_at: string | null;
};

export type Finding = {
  readonly id: number;
  readonly address: string;
  readonly starttls: StartTls | null;
  /** null for a certificate that the vault does not have. */
  readonly certificate: string | null;
  readonly issuer: string;
  readonly names: readonly string[];
  readonly fingerprint_sha256: string;
  readonly not_before: string;
  readonly not_after: string;
  readonly endpoint: boolean;
  readonly first_seen_at: string;
  readonly seen_at: string;
};

export type WholeFinding = Finding & {
  /** The certificates that the server sent; empty if they were too large. */
  readonly chain_pem: string;
};

/** Between two looks at a scan that runs or is about to, in milliseconds: no event reports its progress. */
export const progressEvery = 3000;
