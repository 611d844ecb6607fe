/** The short form of the soak, which checks the records but not the figures, and tests of the trend. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shortOrder } from './short-order.ts';
import { soakFor } from './soak.ts';
import { isFlat, type Sample, trendOf } from './soak-trend.ts';

test('after a few seconds of mixed load the audit log matches all responses', async (t) => {
  const { rows, books, rate } = await soakFor(shortOrder(t), 6000, 500);
  for (const [name, samples] of rows)
    assert.ok(samples.length >= 10 && samples.every(({ value }) => value > 0), name);
  assert.ok(rate > 0);
  for (const [name, value] of Object.entries(books)) {
    if (typeof value === 'number') assert.ok(value > 0, `nothing was done of ${name}`);
  }
});

const allowed = { share: 0.05, least: 8 };

const row = (value: (at: number) => number): Sample[] =>
  Array.from({ length: 100 }, (_, index) => ({ at: index * 5, value: value(index) }));

const verdicts: readonly [title: string, samples: Sample[], flat: boolean][] = [
  ['a constant series', row(() => 150), true],
  ['an oscillating series', row((at) => 150 + 20 * (at % 2)), true],
  ['a rise in the first part only', row((at) => Math.min(at, 50) + 100), true],
  ['a falling series', row((at) => 200 - at), true],
  ['a small rise', row((at) => 150 + at / 10), true],
  ['a steady rise', row((at) => 150 + at / 2), false],
  ['a rise with noise', row((at) => 150 + at + 20 * (at % 2)), false],
  ['a late rise', row((at) => 150 + Math.max(0, at - 70)), false],
];

for (const [title, samples, flat] of verdicts) {
  test(`${title} is ${flat ? 'flat' : 'not flat'}`, () => {
    assert.equal(isFlat(trendOf(samples), allowed), flat, JSON.stringify(trendOf(samples)));
  });
}

test('too few samples have no trend', () => {
  assert.throws(() => trendOf(row(() => 1).slice(0, 6)), /too few/);
});
