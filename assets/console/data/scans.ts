/** Scans of networks and the TLS servers that they found. */
import { useEffect } from 'preact/hooks';
import type { Resource } from './resource.ts';
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
  readonly not_after: string;
  readonly endpoint: boolean;
};

const pollEvery = 3000;

/** Reloads every few seconds while `isActive`: the progress of a scan sends no live update. */
export function usePolled({ reload }: Pick<Resource<unknown>, 'reload'>, isActive: boolean): void {
  useEffect(() => {
    if (!isActive) return;
    const timer = setInterval(() => {
      if (!document.hidden) void reload();
    }, pollEvery);
    return () => clearInterval(timer);
  }, [reload, isActive]);
}
