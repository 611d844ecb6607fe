/** Plans: every column of the rows that says when to renew reaches the policy, and some certificates have no plan. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, minute } from '../../../src/base/duration.ts';
import {
  neverRenewed,
  nextRenewalAt,
  type PlannedCertificate,
  type PlannedVersion,
  renewalFacts,
} from '../../../src/domain/schedule/renewal-plan.ts';
import { renewAt } from '../../../src/domain/schedule/renewal-policy.ts';

const now = Date.UTC(2026, 10, 21);

const certificate: PlannedCertificate = {
  issuer_id: 1,
  auto_renew: 1,
  disabled_at: null,
  changed_at: null,
  failed_attempts: 0,
  last_attempt_at: null,
  retry_after: null,
  ari_renew_at: null,
};

const version: PlannedVersion = {
  not_before: now - 10 * day,
  not_after: now + 80 * day,
  serial: '0A1B',
  created_at: now - 9 * day,
  source: 'local-ca',
};

test('renewalFacts reads each fact from its own column', () => {
  const row = {
    ...certificate,
    changed_at: 1,
    failed_attempts: 2,
    last_attempt_at: 3,
    retry_after: 4,
    ari_renew_at: 5,
  };
  assert.deepEqual(renewalFacts(row, version, now), {
    now,
    current: {
      notBefore: version.not_before,
      notAfter: version.not_after,
      madeAt: version.created_at,
      isOwn: true,
      seed: '0A1B',
    },
    changed: true,
    ariMoment: 5,
    failedAttempts: 2,
    lastAttemptAt: 3,
    retryAfter: 4,
    fallback: undefined,
  });
  const withFallback = { ...row, fallback_issuer_id: 6, fallback_retry_after: 7 };
  assert.deepEqual(renewalFacts(withFallback, version, now).fallback, { retryAfter: 7 });
});

for (const nothing of [undefined, null]) {
  test(`a certificate whose version is ${nothing} has no current facts, and is due now`, () => {
    assert.equal(renewalFacts(certificate, nothing, now).current, null);
    assert.equal(nextRenewalAt(certificate, nothing, now), now);
  });
}

test('nextRenewalAt returns the time of the policy', () => {
  assert.equal(nextRenewalAt(certificate, version, now), renewAt(renewalFacts(certificate, version, now)));
  const failed = { ...certificate, failed_attempts: 1, last_attempt_at: now };
  assert.equal(nextRenewalAt(failed, version, now), now + minute);
  const told = { ...certificate, ari_renew_at: now + 3 * day };
  assert.equal(nextRenewalAt(told, version, now), now + 3 * day);
  assert.equal(nextRenewalAt({ ...certificate, changed_at: now }, version, now), now);
});

test('near expiry a Retry-After of the primary issuer does not delay the fallback', () => {
  const late = version.not_after - 10 * day;
  const failed = { ...certificate, last_attempt_at: late, retry_after: late + 6 * day };
  const next = (failed_attempts: number, fallback_issuer_id: number | null, at = late) =>
    (nextRenewalAt({ ...failed, failed_attempts, fallback_issuer_id, last_attempt_at: at }, version, at) ??
      0) - at;
  assert.deepEqual(
    [1, 2, 3, 4].map((failures) => next(failures, 2)),
    [minute, 10 * minute, 100 * minute, day],
  );
  // Without a fallback it is waited for until a twentieth is left.
  assert.equal(next(2, null), 10 * day - (90 * day) / 20);
  // While there is time the primary one is waited for, but not longer than until the end is near.
  assert.equal(next(2, 2, version.not_after - 16 * day), day);
  assert.equal(next(2, 2, version.not_after - 30 * day), 7 * day);
});

const withoutPlan: Readonly<Record<string, Partial<PlannedCertificate>>> = {
  'has no issuer': { issuer_id: null },
  'does not renew automatically': { auto_renew: 0 },
  'is disabled': { disabled_at: now },
  'was imported': neverRenewed,
};

for (const [what, changes] of Object.entries(withoutPlan)) {
  test(`a certificate that ${what} has no renewal time, even if due or changed`, () => {
    const urgent = { ...certificate, changed_at: now, ari_renew_at: now - day, failed_attempts: 1 };
    assert.equal(nextRenewalAt({ ...certificate, ...changes }, version, now), null);
    assert.equal(nextRenewalAt({ ...urgent, ...changes }, undefined, now), null);
  });
}
