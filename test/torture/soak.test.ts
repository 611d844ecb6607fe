/** The short form of the soak, of which the books count and not the figures; and what is called flat. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shortOrder } from './short-order.ts';
import { soakFor } from './soak.ts';
import { isFlat, type Sample, trendOf } from './soak-trend.ts';

test('after a few seconds of everything at once the audit log holds exactly what was answered', async (t) => {
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
  ['what stays', row(() => 150), true],
  ['what goes up and down', row((at) => 150 + 20 * (at % 2)), true],
  ['what rises in the first part and stays then', row((at) => Math.min(at, 50) + 100), true],
  ['what falls', row((at) => 200 - at), true],
  ['what rises a little', row((at) => 150 + at / 10), true],
  ['what rises steadily', row((at) => 150 + at / 2), false],
  ['what rises under all its noise', row((at) => 150 + at + 20 * (at % 2)), false],
  ['what begins to rise late', row((at) => 150 + Math.max(0, at - 70)), false],
];

for (const [title, samples, flat] of verdicts) {
  test(`${title} is ${flat ? 'flat' : 'not flat'}`, () => {
    assert.equal(isFlat(trendOf(samples), allowed), flat, JSON.stringify(trendOf(samples)));
  });
}

test('a few samples tell no trend', () => {
  assert.throws(() => trendOf(row(() => 1).slice(0, 6)), /too few/);
});
