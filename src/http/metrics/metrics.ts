/** Collects the metrics of a vault: counters of its processes, and values from its database. */
import { parseJsonOr } from '../../base/json.ts';
import { labelValue } from '../../base/object-label.ts';
import {
  type WatchedCertificate,
  watchedCertificates,
} from '../../domain/certificates/certificate-search.ts';
import { certificateStatus, certificateStatuses } from '../../domain/certificates/certificate-status.ts';
import type { DatabaseContext, LogContext, TimedContext, WorldContext } from '../../domain/contexts.ts';
import { countDeployments } from '../../domain/deployments/deployments.ts';
import { type ReadinessContext, readiness } from '../../domain/doctor/readiness.ts';
import { countWork } from '../../domain/doctor/vault-counts.ts';
import { countEndpoints } from '../../domain/endpoints/endpoints.ts';
import type { Series } from '../../domain/health/meter.ts';
import { caExpiries, listPrivateCas } from '../../domain/private-ca/ca-expiry.ts';
import { type MetricFamily, type MetricName, metricFamilies } from './metric-families.ts';
import { familyHead, metricText, seriesName } from './metric-text.ts';

export type Metrics = {
  /** Whether a client with this token, or without one, may read them. */
  readonly isOpenTo: (token: string | undefined) => boolean;
  /** The counters of all processes of the vault, and the state of each process. */
  readonly series: () => Promise<Series>;
  /** The families of `series` that are not in the vault's own table. */
  readonly families: Readonly<Record<string, MetricFamily>>;
  /** The interval of scheduled backups in milliseconds; undefined if none are scheduled. */
  readonly backupEvery: number | undefined;
  /** The key of the label whose value the series of certificates have; undefined for none. */
  readonly label?: string | undefined;
};

/** Certificates are written in batches of this size, so that other requests are served in between. */
const perPiece = 500;

/** How many are summed up at once. */
const summedAtOnce = 10_000;

/**
 * The text, in pieces; `waiting` is the number of requests that wait for a new version. Values that the database does
 * not provide are left out; `vault_ready` reports the problem.
 */
export async function* metricsText(
  vault: ReadinessContext,
  version: string,
  metrics: Metrics,
  waiting: number,
): AsyncGenerator<string> {
  const counted = await metrics.series();
  const watched = await watchedCertificates(vault, { hasLabels: metrics.label !== undefined }).catch(
    (error: unknown) => {
      vault.log.warn({ err: error }, 'failed to read certificate metrics');
      return undefined;
    },
  );
  const gauges = {
    certificate_vault_waiting_requests: waiting,
    ...(await ownGauges(vault, version, metrics)),
    ...(await sumsOf(watched ?? [], vault)),
  };
  yield metricText({ ...metricFamilies, ...metrics.families }, { ...counted, ...gauges });
  if (watched === undefined) return;
  for (const [name, read] of perCertificate) {
    yield familyHead(name, metricFamilies[name]);
    for (let at = 0; at < watched.length; at += perPiece) {
      const lines = watched.slice(at, at + perPiece).flatMap((row) => {
        const value = read(row);
        return value === undefined
          ? []
          : `${seriesName(name, { name: row.name, ...labelOf(row, metrics.label) })} ${value}\n`;
      });
      yield lines.join('');
      await vault.world.turn();
    }
  }
}

/** Disabled certificates must not raise alerts. */
const perCertificate: readonly (readonly [MetricName, (row: WatchedCertificate) => number | undefined])[] = [
  [
    'vault_certificate_not_after_timestamp_seconds',
    ({ not_after, disabled_at }) => (disabled_at === null ? seconds(not_after) : undefined),
  ],
  [
    'vault_certificate_not_before_timestamp_seconds',
    ({ not_before, disabled_at }) => (disabled_at === null ? seconds(not_before) : undefined),
  ],
  [
    'vault_certificate_issued_timestamp_seconds',
    ({ created_at, disabled_at }) => (disabled_at === null ? seconds(created_at) : undefined),
  ],
  [
    'vault_certificate_failed_attempts',
    ({ failed_attempts, disabled_at }) =>
      failed_attempts > 0 && disabled_at === null ? failed_attempts : undefined,
  ],
];

/** The value of the label with this key; nothing for certificates without one. */
function labelOf({ labels }: WatchedCertificate, key: string | undefined): Readonly<Record<string, string>> {
  const value = key === undefined ? undefined : labelValue(parseJsonOr(labels, []), key);
  // As kube-state-metrics does it: names of labels have fewer characters here, and a prefix keeps them apart.
  return value === undefined ? {} : { [`label_${key?.replaceAll(/[^a-z0-9]/g, '_')}`]: value };
}

function seconds(ms: number | null): number | undefined {
  return ms === null ? undefined : ms / 1000;
}

async function sumsOf(rows: readonly WatchedCertificate[], { world }: WorldContext): Promise<Series> {
  const now = world.now();
  const counts = new Map<string, number>(certificateStatuses.map((status) => [status, 0]));
  let newest = 0;
  for (const [index, { not_before, not_after, created_at, disabled_at }] of rows.entries()) {
    if (index % summedAtOnce === summedAtOnce - 1) await world.turn();
    const current = not_before === null || not_after === null ? null : { not_before, not_after };
    const status = certificateStatus(current, now, disabled_at !== null);
    counts.set(status, (counts.get(status) ?? 0) + 1);
    newest = Math.max(newest, created_at ?? 0);
  }
  const series: Record<string, number> = {};
  for (const [status, count] of counts) series[seriesName('vault_certificates', { status })] = count;
  if (newest > 0) series.vault_last_issued_timestamp_seconds = newest / 1000;
  return series;
}

async function ownGauges(
  vault: ReadinessContext,
  version: string,
  { backupEvery }: Metrics,
): Promise<Series> {
  const { status, checks } = await readiness(vault);
  const series: Record<string, number> = {
    [seriesName('vault_build_info', { version })]: 1,
    vault_ready: status === 'ready' ? 1 : 0,
    vault_backup_failing: vault.backupHealth.isFailing ? 1 : 0,
    ...(backupEvery !== undefined && { vault_backup_interval_seconds: backupEvery / 1000 }),
  };
  for (const [check, result] of Object.entries(checks)) {
    series[seriesName('vault_check_ok', { check })] = result === 'ok' ? 1 : 0;
  }
  const disk = { vault_disk_low: ['ok', 'low', 'critical'].indexOf(vault.disk.state()) };
  return { ...series, ...disk, ...(await sizesOf(vault)), ...(await storedGauges(vault)) };
}

async function storedGauges(vault: TimedContext & LogContext): Promise<Series> {
  try {
    const { renewals, lastBackupAt: backup, ...counts } = await countWork(vault);
    return {
      [seriesName('vault_renewals_open', { state: 'queued' })]: renewals.queued,
      [seriesName('vault_renewals_open', { state: 'running' })]: renewals.running,
      vault_notifications_untaken: counts.untakenDeliveries,
      vault_api_keys: counts.apiKeys,
      vault_audit_events_total: counts.auditEvents,
      ...(backup !== undefined && { vault_backup_last_success_timestamp_seconds: backup / 1000 }),
      ...(await privateCaGauges(vault)),
      ...(await stateGauges('certificate_vault_deployments', countDeployments(vault))),
      ...(await stateGauges('certificate_vault_endpoints', countEndpoints(vault))),
    };
  } catch (error) {
    vault.log.warn({ err: error }, 'failed to read metrics from the database');
    return {};
  }
}

async function stateGauges(
  name: 'certificate_vault_deployments' | 'certificate_vault_endpoints',
  counting: Promise<Readonly<Record<string, number>>>,
): Promise<Series> {
  const counts = Object.entries(await counting);
  return Object.fromEntries(counts.map(([state, count]) => [seriesName(name, { state }), count]));
}

async function privateCaGauges(vault: TimedContext): Promise<Series> {
  const series: Record<string, number> = {};
  for (const ca of await listPrivateCas(vault.db.reader)) {
    for (const { name, role, notAfter } of await caExpiries(vault, ca)) {
      series[seriesName('vault_private_ca_not_after_timestamp_seconds', { name, role })] = notAfter / 1000;
    }
    await vault.world.turn();
  }
  return series;
}

async function sizesOf({ db }: DatabaseContext): Promise<Series> {
  const sizes = await db.file?.sizes();
  if (sizes === undefined) return {};
  const { database, log, free } = sizes;
  return {
    [seriesName('vault_database_size_bytes', { file: 'database' })]: database,
    [seriesName('vault_database_size_bytes', { file: 'wal' })]: log,
    vault_disk_free_bytes: free,
  };
}
