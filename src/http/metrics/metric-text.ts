/** Formats metrics for Prometheus (text format 0.0.4): each family with its series together, and no duplicates. */
import type { Series } from '../../domain/health/meter.ts';
import type { MetricFamily } from './metric-families.ts';

export const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8';

/** The families that have series, with these. */
export function metricText(families: Readonly<Record<string, MetricFamily>>, series: Series): string {
  const lines = new Map<string, string[]>();
  for (const [name, value] of Object.entries(series)) {
    const family = familyOf(families, name);
    if (family === undefined) continue;
    const known = lines.get(family) ?? [];
    lines.set(family, known);
    known.push(`${name} ${value}`);
  }
  return [...lines]
    .map(([family, its]) => `${familyHead(family, families[family])}${its.join('\n')}\n`)
    .join('');
}

/** The HELP and TYPE lines of a family. */
export function familyHead(name: string, family: MetricFamily | undefined): string {
  const [type, help] = family ?? ['gauge', ''];
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n`;
}

/** The name of a series with its labels. */
export function seriesName(name: string, labels: Readonly<Record<string, string | number>> = {}): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escaped(String(value))}"`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`;
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function familyOf(families: Readonly<Record<string, MetricFamily>>, series: string): string | undefined {
  const at = series.indexOf('{');
  const name = at === -1 ? series : series.slice(0, at);
  if (name in families) return name;
  const base = name.replace(/_(bucket|sum|count)$/, '');
  return base in families ? base : undefined;
}
