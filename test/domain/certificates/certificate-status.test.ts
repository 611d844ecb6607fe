/** Status: pending, valid, expiring and expired follow from the clock and the validity alone, at any lifetime. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { certificateStatus } from '../../../src/domain/certificates/certificate-status.ts';
import { renewAt } from '../../../src/domain/schedule/renewal-policy.ts';

const notBefore = Date.UTC(2026, 10, 21);
const validity = (lifetime: number) => ({ not_before: notBefore, not_after: notBefore + lifetime });

test('a certificate without a version is pending at any time', () => {
  assert.equal(certificateStatus(null, 0), 'pending');
  assert.equal(certificateStatus(null, notBefore), 'pending');
});

const lifetimes: readonly (readonly [name: string, lifetime: number, expiringFor: number])[] = [
  ['90 days', 90 * day, 22.5 * day],
  ['64 days', 64 * day, 16 * day],
  ['47 days', 47 * day, 11.75 * day],
  ['45 days', 45 * day, 11.25 * day],
  ['160 hours', 160 * hour, 40 * hour],
  ['1 hour', hour, 15 * minute],
  ['10 years', 3650 * day, 30 * day],
];

for (const [name, lifetime, expiringFor] of lifetimes) {
  test(`a certificate of ${name} is expiring for the last ${expiringFor / hour} hours`, () => {
    const current = validity(lifetime);
    const end = current.not_after;
    const table: readonly (readonly [now: number, status: string])[] = [
      [notBefore - 5 * minute - 1, 'not_yet_valid'],
      [notBefore - 5 * minute, 'valid'],
      [notBefore, 'valid'],
      [end - expiringFor - 1, 'valid'],
      [end - expiringFor, 'expiring'],
      [end - 1, 'expiring'],
      [end, 'expired'],
      [end + 3650 * day, 'expired'],
    ];
    for (const [now, status] of table) assert.equal(certificateStatus(current, now), status);
  });

  test(`a certificate of ${name} is still valid when its renewal is due`, () => {
    const current = validity(lifetime);
    for (const seed of ['', 'a', 'b', 'c']) {
      const facts = {
        now: notBefore,
        current: { notBefore, notAfter: current.not_after, madeAt: notBefore, seed },
        changed: false,
        ariMoment: null,
        failedAttempts: 0,
        lastAttemptAt: null,
        retryAfter: null,
      };
      assert.equal(certificateStatus(current, renewAt(facts)), 'valid');
    }
  });
}
