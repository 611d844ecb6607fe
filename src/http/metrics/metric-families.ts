/**
 * All metrics of the vault with their types and help texts. A test compares dashboards and alerting rules with this
 * table.
 */

export type MetricType = 'counter' | 'gauge' | 'histogram';

export type MetricFamily = readonly [type: MetricType, help: string];

/** By name. Series of a histogram have its name and the suffix `_bucket`, `_sum` or `_count`. */
export const metricFamilies = {
  vault_build_info: ['gauge', 'Always 1; the label has the running version.'],
  vault_ready: ['gauge', '1 if /api/v1/ready reports ready, else 0.'],
  vault_check_ok: ['gauge', 'Readiness checks: 1 if passed, else 0.'],
  vault_certificates: ['gauge', 'Certificates by status.'],
  vault_certificate_not_after_timestamp_seconds: [
    'gauge',
    'Expiry of the current version of a certificate; absent for disabled certificates.',
  ],
  vault_certificate_not_before_timestamp_seconds: [
    'gauge',
    'Start of validity of the current version of a certificate.',
  ],
  vault_certificate_issued_timestamp_seconds: [
    'gauge',
    'Time when the current version of a certificate was issued or imported.',
  ],
  vault_certificate_failed_attempts: [
    'gauge',
    'Consecutive failed renewals of a certificate; absent if none.',
  ],
  certificate_vault_deployments: [
    'gauge',
    'Where certificates are installed, by state: current, outdated, failing or silent.',
  ],
  certificate_vault_endpoints: [
    'gauge',
    'TLS servers that the vault checks, by state: current, unreachable, unknown, outdated, untrusted, expiring or unchecked.',
  ],
  vault_last_issued_timestamp_seconds: [
    'gauge',
    'Time of the latest issuance or import of a current version.',
  ],
  vault_private_ca_not_after_timestamp_seconds: [
    'gauge',
    'Expiry of what a person must replace in a private CA: its root, and its intermediate if the key of the root was exported.',
  ],
  vault_renewals_total: ['counter', 'Finished renewals, by result.'],
  vault_renewal_duration_seconds: ['histogram', 'Duration of renewals.'],
  vault_acme_orders_total: [
    'counter',
    'Orders of ACME clients, by result (issued, failed, refused), client and issuer; after 200 pairs of client and issuer, the others together.',
  ],
  vault_acme_order_duration_seconds: [
    'histogram',
    'Time from the order of an ACME client to its certificate.',
  ],
  vault_renewals_open: ['gauge', 'Open renewals: queued or running.'],
  vault_notifications_untaken: ['gauge', 'Failed deliveries of notifications that will be retried.'],
  vault_downloads_total: ['counter', 'Downloads of artifacts; each is in the audit log.'],
  vault_downloads_not_modified_total: ['counter', 'Requests for artifacts answered with 304 Not Modified.'],
  vault_authentication_failures_total: ['counter', 'Rejected credentials, by reason.'],
  vault_http_requests_total: ['counter', 'HTTP requests, by route and status.'],
  certificate_vault_waiting_requests: [
    'gauge',
    'Requests to this process that wait for a new version, at most 10,000.',
  ],
  vault_http_request_duration_seconds: ['histogram', 'Time to the response, by kind of request.'],
  vault_api_keys: ['gauge', 'API keys, including revoked and expired ones.'],
  vault_audit_events_total: ['counter', 'Audit events recorded since the vault was created.'],
  vault_database_size_bytes: ['gauge', 'Size of the database and its write-ahead log.'],
  vault_disk_free_bytes: ['gauge', 'Free space on the file system of the data directory.'],
  vault_disk_low: [
    'gauge',
    '1 if disk space is low, 2 if it is critical (rejected requests are counted, not recorded).',
  ],
  vault_backup_last_success_timestamp_seconds: [
    'gauge',
    'Point in time up to which the last backup is complete.',
  ],
  vault_backup_failing: ['gauge', '1 if the last scheduled backup failed, else 0.'],
  vault_backup_interval_seconds: ['gauge', 'Interval of scheduled backups; absent if none are scheduled.'],
} as const satisfies Record<string, MetricFamily>;

export type MetricName = keyof typeof metricFamilies;
