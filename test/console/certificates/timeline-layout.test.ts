/** The layout of the timeline: the order of its rows, its axis and the ticks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Health } from '../../../assets/console/certificates/certificate-health.ts';
import { type Life, ticks, timelineLayout } from '../../../assets/console/certificates/timeline-layout.ts';

const day = 86_400_000;
const now = Date.UTC(2026, 5, 15);
const life = (index: number, health: Health = 'good', left = 10 + (index % 80)): Life => ({
  name: `c${index}`,
  from: now - 10 * day,
  to: now + left * day,
  renewAt: now + (left - 5) * day,
  health,
});
const many = (count: number) => Array.from({ length: count }, (_, index) => life(index));

test('each certificate has a row, sorted by health and then by expiry', () => {
  const { rows } = timelineLayout(
    [life(1, 'good', 50), life(2, 'good', 20), life(3, 'bad', -2), life(4, 'warning', 3)],
    now,
  );
  assert.deepEqual(
    rows.map(({ name }) => name),
    ['c3', 'c4', 'c2', 'c1'],
  );
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
