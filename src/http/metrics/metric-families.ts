/** The metrics of the vault: the one table from which their types and help come. Dashboards and rules are held to it by a test. */

export type MetricType = 'counter' | 'gauge' | 'histogram';

export type MetricFamily = readonly [type: MetricType, help: string];

/** By name. A histogram's series are called like it and `_bucket`, `_sum` or `_count`. */
export const metricFamilies = {
  vault_build_info: ['gauge', 'Always 1; the version that runs is in the label.'],
  vault_ready: ['gauge', '1 while /api/v1/ready says so.'],
  vault_check_ok: ['gauge', 'The checks of readiness: 1 where it is passed.'],
  vault_workers: ['gauge', 'Processes that serve.'],
  vault_worker_restarts_total: ['counter', 'Workers that ended and were replaced.'],
  vault_certificates: ['gauge', 'Certificates by status.'],
  vault_certificate_not_after_timestamp_seconds: [
    'gauge',
    'When the current version of a certificate expires; none for disabled ones.',
  ],
  vault_certificate_not_before_timestamp_seconds: ['gauge', 'From when on it is valid.'],
  vault_certificate_issued_timestamp_seconds: ['gauge', 'When it was issued or imported.'],
  vault_certificate_failed_attempts: [
    'gauge',
    'Renewals of a certificate that have failed in a row, where any have.',
  ],
  vault_last_issued_timestamp_seconds: ['gauge', 'When the newest current version was issued or imported.'],
  vault_renewals_total: ['counter', 'Renewals that have ended, by result.'],
  vault_renewal_duration_seconds: ['histogram', 'From taking a renewal up to its end.'],
  vault_renewals_open: ['gauge', 'The queue: renewals that wait (queued) or are worked on (running).'],
  vault_notifications_untaken: [
    'gauge',
    'Notifications that a receiver did not take, and that are tried again.',
  ],
  vault_downloads_total: ['counter', 'Artifacts handed out, each of them audited.'],
  vault_downloads_not_modified_total: ['counter', 'Requests for artifacts answered with 304.'],
  vault_authentication_failures_total: ['counter', 'Credentials that did not count, by reason.'],
  vault_http_requests_total: ['counter', 'Requests by route and status.'],
  vault_http_request_duration_seconds: ['histogram', 'Time to an answer, by kind of request.'],
  vault_api_keys: ['gauge', 'API keys, also revoked and expired ones.'],
  vault_audit_events_total: ['counter', 'Audit events ever recorded.'],
  vault_database_size_bytes: ['gauge', 'The database and its write-ahead log.'],
  vault_disk_free_bytes: ['gauge', 'What is left on the file system of the data directory.'],
  vault_disk_low: ['gauge', '1 while disk space is low, 2 while refusals are only counted for that reason.'],
  vault_backup_last_success_timestamp_seconds: ['gauge', 'Up to when the last backup holds everything.'],
  vault_backup_failing: ['gauge', '1 while the last backup by time has failed.'],
  vault_backup_interval_seconds: ['gauge', 'How often backups are made, where they are made by time.'],
} as const satisfies Record<string, MetricFamily>;

export type MetricName = keyof typeof metricFamilies;
