/**
 * What is counted: series that are there from the beginning, sums that fit together, and how many series there can be.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Meter } from '../../../src/domain/health/meter.ts';

test('counters exist with the value 0 before the first event', () => {
  const series = new Meter().series();
  for (const name of [
    'vault_downloads_total{artifact="private.key"}',
    'vault_downloads_not_modified_total{artifact="fullchain.pem"}',
    'vault_authentication_failures_total{reason="password"}',
    'vault_renewals_total{result="failed"}',
    'vault_renewal_duration_seconds_count',
    'vault_http_request_duration_seconds_bucket{kind="download",le="+Inf"}',
  ]) {
    assert.equal(series[name], 0, name);
  }
});

test('a duration counts in its bucket and all larger ones, in sum and count; a negative one counts as zero', () => {
  const meter = new Meter();
  for (const ms of [1, 3, 20, 60_000, -5]) meter.requested('/api/v1/health', 200, ms);
  const series = meter.series();
  const bucket = (le: string) => series[`vault_http_request_duration_seconds_bucket{kind="api",le="${le}"}`];
  assert.deepEqual(['0.001', '0.005', '0.025', '10', '+Inf'].map(bucket), [2, 3, 4, 4, 5]);
  assert.equal(series['vault_http_request_duration_seconds_count{kind="api"}'], 5);
  assert.equal(series['vault_http_request_duration_seconds_sum{kind="api"}'], 60.024);
  assert.equal(series['vault_http_requests_total{route="/api/v1/health",status="200"}'], 5);
});

test('requests are counted by route and status, and durations by kind', () => {
  const meter = new Meter();
  meter.requested('/api/v1/certificates/{name}/private.key', 200, 2);
  meter.requested('/api/v1/certificates/{name}/private.key', 401, 2);
  meter.requested('none', 404, 0);
  const series = meter.series();
  const count = (kind: string) => series[`vault_http_request_duration_seconds_count{kind="${kind}"}`];
  assert.deepEqual(['download', 'api', 'other'].map(count), [2, 0, 1]);
  assert.equal(series['vault_http_requests_total{route="none",status="404"}'], 1);
});

test('orders are counted by result, client and issuer up to 200 pairs, and durations of issued orders are recorded', () => {
  const meter = new Meter();
  const web = { client: 'web', issuer: 'local-ca' };
  meter.ordered('issued', web, 1500);
  meter.ordered('issued', web, -1);
  meter.ordered('refused', web);
  for (let at = 0; at < 500; at += 1) meter.ordered('failed', { client: `c${at}`, issuer: 'local-ca' });
  meter.ordered('issued', web, 10);
  const series = meter.series();
  const count = (client: string, issuer: string, result: string) =>
    series[`vault_acme_orders_total{client="${client}",issuer="${issuer}",result="${result}"}`];
  assert.deepEqual([count('web', 'local-ca', 'issued'), count('web', 'local-ca', 'refused')], [3, 1]);
  assert.equal(count('other', 'other', 'failed'), 301);
  assert.equal(Object.keys(series).filter((name) => name.startsWith('vault_acme_orders_total')).length, 202);
  assert.equal(series.vault_acme_order_duration_seconds_count, 3);
  assert.equal(series['vault_acme_order_duration_seconds_bucket{le="0.05"}'], 2);
});
