/** Sets up the metrics of a serving process, alone or as one of several workers. */
import { sameBytes } from '../../crypto/constant-time.ts';
import type { PeerWorkers } from '../../domain/access/peer-workers.ts';
import type { Meter, Series } from '../../domain/health/meter.ts';
import type { Metrics } from '../../http/metrics/metrics.ts';
import { processMetrics } from '../../http/metrics/process-metrics.ts';
import { readMetricsToken } from '../settings/metrics-settings.ts';
import type { Settings } from '../settings/settings.ts';

/** The metrics of one process: its counters, and its process statistics. */
export type Measured = { readonly counts: Series; readonly process: Series };

/** How to measure one process: counters are cheap, process statistics are collected on demand. */
export type Measuring = { readonly counts: () => Series; readonly process: () => Promise<Series> };

export type MeasuredPeers = PeerWorkers & {
  /** The number of this process in the labels of its series. */
  readonly number: number;
  /** Registers how to measure this process, before the first request. */
  readonly measureBy: (measuring: Measuring) => void;
  /** The series of all processes together. */
  readonly allSeries: () => Promise<Series>;
};

/** The metrics; undefined if they are off. Throws OperatorError. */
export async function openMetrics(
  vault: { readonly meter: Meter },
  { metricsListen, metricsTokenFile, backups }: Settings,
  peers: MeasuredPeers | undefined,
): Promise<Metrics | undefined> {
  if (metricsListen === undefined && metricsTokenFile === undefined) return undefined;
  const token = metricsTokenFile === undefined ? undefined : readMetricsToken(metricsTokenFile);
  const own = await processMetrics(peers && { worker: peers.number });
  const measuring: Measuring = { counts: () => vault.meter.series(), process: own.series };
  peers?.measureBy(measuring);
  const alone = async () => {
    const process = await measuring.process();
    return { ...measuring.counts(), ...process, vault_workers: 1, vault_worker_restarts_total: 0 };
  };
  return {
    isOpenTo: (presented) =>
      token === undefined || (presented !== undefined && sameBytes(Buffer.from(presented), token.expose())),
    series: peers?.allSeries ?? alone,
    families: own.families,
    backupEvery: backups?.every,
  };
}
