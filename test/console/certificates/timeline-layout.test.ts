/**
 * The layout of the timeline: certificates that need attention are always visible, and many certificates share few
 * bars.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Health } from '../../../assets/console/certificates/certificate-health.ts';
import {
  type Life,
  maxNamed,
  ticks,
  timelineLayout,
} from '../../../assets/console/certificates/timeline-layout.ts';

const day = 86_400_000;
const now = Date.UTC(2026, 5, 15);
const life = (index: number, health: Health = 'good', left = 10 + (index % 80)): Life => ({
  name: `c${index}`,
  from: now - 10 * day,
  to: now + left * day,
  renewAt: now + (left - 5) * day,
  health,
});
const many = (count: number, healthAt: (index: number) => Health = () => 'good') =>
  Array.from({ length: count }, (_, index) => life(index, healthAt(index)));

test('a few certificates have a named row each, sorted by health and then by expiry', () => {
  const { named, thin } = timelineLayout(
    [life(1, 'good', 50), life(2, 'good', 20), life(3, 'bad', -2), life(4, 'warning', 3)],
    now,
  );
  assert.deepEqual(
    named.map(({ name }) => name),
    ['c3', 'c4', 'c2', 'c1'],
  );
  assert.deepEqual(thin, []);
  assert.equal(timelineLayout(many(maxNamed), now).named.length, maxNamed);
});

test('5,000 certificates fit in less than a hundred rows', () => {
  const { named, thin } = timelineLayout(
    many(5000, (index) => (index % 1000 === 7 ? 'bad' : 'good')),
    now,
  );
  assert.equal(named.length, 5);
  assert(named.every(({ health }) => health === 'bad'));
  assert(thin.length < 100);
  assert.equal(
    thin.reduce((sum, { count }) => sum + count, 0),
    4995,
  );
});

test('certificates that need attention but have no named row get thin rows of their own color', () => {
  const { named, thin } = timelineLayout(
    many(300, (index) => (index < 40 ? 'warning' : 'good')),
    now,
  );
  const troubled = [...named, ...thin].filter(({ health }) => health === 'warning');
  assert.equal(
    troubled.reduce((sum, { count }) => sum + count, 0),
    40,
  );
});

test('a shared row ends at the first expiry of its certificates and stores the last', () => {
  const { thin } = timelineLayout(many(500), now);
  for (const row of thin) {
    assert(row.to <= row.last);
    assert(row.last - row.to < 10 * day);
  }
});

test('the axis covers the expiry of nine in ten certificates, so that a single long one does not compress the rest', () => {
  const { start, end } = timelineLayout([...many(100), life(1, 'good', 3650)], now);
  assert(start < now && end > now + 80 * day && end < now + 200 * day);
  const none = timelineLayout([], now);
  assert(none.end > none.start);
});

test('the ticks fit the axis for spans from a week to ten years', () => {
  for (const days of [9, 40, 120, 480, 4800]) {
    const found = ticks(now, now + days * day, 10);
    assert(found.length >= 1 && found.length <= 11, `${days} days: ${found.length}`);
    assert(found.every(({ at }) => at > now && at < now + days * day));
  }
});
