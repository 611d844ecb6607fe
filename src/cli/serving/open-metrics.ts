/** Sets up the metrics of a server. */
import { sameBytes } from '../../crypto/secrets/constant-time.ts';
import type { Meter } from '../../domain/health/meter.ts';
import type { Metrics } from '../../http/metrics/metrics.ts';
import { processMetrics } from '../../http/metrics/process-metrics.ts';
import { readMetricsToken } from '../settings/metrics-settings.ts';
import type { Settings } from '../settings/settings.ts';

/** The metrics; undefined if they are off. Throws OperatorError. */
export async function openMetrics(
  { meter }: { readonly meter: Meter },
  { metricsListen, metricsTokenFile, metricsLabel, backups }: Settings,
): Promise<Metrics | undefined> {
  if (metricsListen === undefined && metricsTokenFile === undefined) return undefined;
  const token = metricsTokenFile === undefined ? undefined : readMetricsToken(metricsTokenFile);
  const process = await processMetrics();
  return {
    isOpenTo: (presented) =>
      token === undefined || (presented !== undefined && sameBytes(Buffer.from(presented), token.expose())),
    series: async () => {
      const ofProcess = await process.series();
      return { ...meter.series(), ...ofProcess };
    },
    families: process.families,
    backupEvery: backups?.every,
    label: metricsLabel,
  };
}
