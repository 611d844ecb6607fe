/** When to renew: relative to the lifetime, spread by a stable jitter, and after failures soon, then ever less often. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { day, hour, minute } from '../../src/base/duration.ts';
import { type RenewalFacts, renewAt } from '../../src/domain/renewal-policy.ts';

const notBefore = Date.UTC(2026, 10, 21);

const facts = (lifetime: number, others: Partial<RenewalFacts> = {}): RenewalFacts => ({
  notBefore,
  notAfter: notBefore + lifetime,
  seed: '0A1B',
  failedAttempts: 0,
  lastAttemptAt: null,
  ...others,
});

const lifetimes: readonly (readonly [name: string, lifetime: number, latestLeft: number])[] = [
  ['90 days', 90 * day, 30 * day],
  ['64 days', 64 * day, (64 / 3) * day],
  ['47 days', 47 * day, (47 / 3) * day],
  ['45 days', 45 * day, 15 * day],
  ['10 days', 10 * day, (10 / 3) * day],
  ['just below 10 days', 10 * day - 20 * minute, 5 * day - 10 * minute],
  ['160 hours', 160 * hour, 80 * hour],
  ['1 hour', hour, 30 * minute],
  ['10 years', 3650 * day, (3650 / 3) * day],
];

for (const [name, lifetime, latestLeft] of lifetimes) {
  const latest = notBefore + lifetime - latestLeft;

  test(`${name}: renewed with ${(latestLeft / hour).toFixed(1)} hours left, up to a fiftieth earlier`, () => {
    fc.assert(
      fc.property(fc.string(), (seed) => {
        const at = renewAt(facts(lifetime, { seed }));
        assert(Number.isInteger(at));
        assert(at <= latest && at >= Math.floor(latest - lifetime / 50), new Date(at).toISOString());
      }),
    );
  });

  test(`${name}: never due at once after it was issued, although it begins a little in the past`, () => {
    const issuedAt = notBefore + Math.min(5 * minute, lifetime / 20);
    for (const seed of ['', 'a', 'b', 'c'])
      assert(renewAt(facts(lifetime, { seed })) > issuedAt + lifetime / 3);
  });

  test(`${name}: after failures 1, 10, 100 minutes, then daily, but at most a twentieth of the lifetime`, () => {
    const lastAttemptAt = notBefore + lifetime / 2;
    const steps = [minute, 10 * minute, 100 * minute, day, day, day];
    for (const [index, step] of steps.entries()) {
      const at = renewAt(facts(lifetime, { failedAttempts: index + 1, lastAttemptAt }));
      assert.equal(at - lastAttemptAt, Math.min(step, lifetime / 20));
    }
    assert.equal(
      renewAt(facts(lifetime, { failedAttempts: 1000, lastAttemptAt })) - lastAttemptAt,
      Math.min(day, lifetime / 20),
    );
  });
}

test('the moment is the same however often it is asked for', () => {
  assert.equal(renewAt(facts(90 * day)), renewAt(facts(90 * day)));
  // Frozen: a jitter that changed with an upgrade would move the renewals of a whole fleet at once.
  assert.equal(new Date(renewAt(facts(90 * day))).toISOString(), '2027-01-19T12:28:27.674Z');
});

test('a thousand certificates that were issued together are not renewed together', () => {
  const moments = Array.from({ length: 1000 }, (_, n) => renewAt(facts(90 * day, { seed: String(n) })));
  const latest = notBefore + 60 * day;
  const tenths = new Map<number, number>();
  for (const at of moments) {
    const tenth = Math.floor((latest - at) / ((90 * day) / 500));
    tenths.set(tenth, (tenths.get(tenth) ?? 0) + 1);
  }
  assert.equal(tenths.size, 10);
  for (const count of tenths.values()) assert(count > 60 && count < 140, String(count));
});

test('a success forgets the failures before it', () => {
  const lastAttemptAt = notBefore + 60 * day;
  assert.equal(renewAt(facts(90 * day, { lastAttemptAt })), renewAt(facts(90 * day)));
});

test('a failure whose end is not known is tried at the planned moment', () => {
  assert.equal(renewAt(facts(90 * day, { failedAttempts: 3 })), renewAt(facts(90 * day)));
});

test('failures after the expiry go on being tried', () => {
  const lastAttemptAt = notBefore + 100 * day;
  assert.equal(renewAt(facts(90 * day, { failedAttempts: 9, lastAttemptAt })), lastAttemptAt + day);
});
