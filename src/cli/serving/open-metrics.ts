/** From the settings to the metrics of a process that serves, alone or beside others. */
import { sameBytes } from '../../crypto/constant-time.ts';
import type { PeerWorkers } from '../../domain/access/peer-workers.ts';
import type { Meter, Series } from '../../domain/health/meter.ts';
import type { Metrics } from '../../http/metrics/metrics.ts';
import { processMetrics } from '../../http/metrics/process-metrics.ts';
import { readMetricsToken } from '../settings/metrics-settings.ts';
import type { Settings } from '../settings/settings.ts';

/** What one process says when it is asked: what it has counted, and how it is itself. */
export type Measured = { readonly counts: Series; readonly process: Series };

/** How one process finds that out: the counts at any time for nothing, the rest when somebody asks. */
export type Measuring = { readonly counts: () => Series; readonly process: () => Promise<Series> };

export type MeasuredPeers = PeerWorkers & {
  /** This process, as it stands in the labels of its series. */
  readonly number: number;
  /** Is told, before the first request, how this process is measured. */
  readonly measureBy: (measuring: Measuring) => void;
  /** Of all processes together. */
  readonly allSeries: () => Promise<Series>;
};

/** Undefined where nobody asked for metrics; what makes them is then not even loaded. Throws OperatorError. */
export async function openMetrics(
  vault: { readonly meter: Meter },
  { metricsListen, metricsTokenFile, backups }: Settings,
  companions: MeasuredPeers | undefined,
): Promise<Metrics | undefined> {
  if (metricsListen === undefined && metricsTokenFile === undefined) return undefined;
  const token = metricsTokenFile === undefined ? undefined : readMetricsToken(metricsTokenFile);
  const own = await processMetrics(companions && { worker: companions.number });
  const measuring: Measuring = { counts: () => vault.meter.series(), process: own.series };
  companions?.measureBy(measuring);
  const alone = async () => {
    const process = await measuring.process();
    return { ...measuring.counts(), ...process, vault_workers: 1, vault_worker_restarts_total: 0 };
  };
  return {
    isOpenTo: (presented) =>
      token === undefined || (presented !== undefined && sameBytes(Buffer.from(presented), token.expose())),
    series: companions?.allSeries ?? alone,
    families: own.families,
    backupEvery: backups?.every,
  };
}
