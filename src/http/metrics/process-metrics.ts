/** Resource usage of a process: memory, CPU time, event loop delay, descriptors, as defined by prom-client. */
import type { Series } from '../../domain/health/meter.ts';
import type { MetricFamily, MetricType } from './metric-families.ts';
import { seriesName } from './metric-text.ts';

/** Metrics about Node rather than the vault. */
const leftOut = /^nodejs_(active|heap_space)_/;

export type ProcessMetrics = {
  readonly families: Readonly<Record<string, MetricFamily>>;
  /** The current values. */
  readonly series: () => Promise<Series>;
};

/** Starts to measure this process. The library is loaded only on this call. */
export async function processMetrics(): Promise<ProcessMetrics> {
  const { collectDefaultMetrics, Registry } = await import('prom-client');
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const { name } of await registry.getMetricsAsJSON()) {
    if (leftOut.test(name)) registry.removeSingleMetric(name);
  }
  const all = await registry.getMetricsAsJSON();
  const families = all.map(({ name, help, type }) => [name, [String(type) as MetricType, help]] as const);
  return {
    families: Object.fromEntries(families),
    series: async () => {
      const series: Record<string, number> = {};
      for (const { name, values } of await registry.getMetricsAsJSON()) {
        for (const value of values) {
          const { metricName = name } = value as { metricName?: string };
          series[seriesName(metricName, definedOf(value.labels))] = value.value;
        }
      }
      return series;
    },
  };
}

function definedOf(labels: object): Record<string, string | number> {
  return Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== undefined));
}
