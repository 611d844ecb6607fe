/** Durations: a whole number and a unit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDuration } from '../../src/base/duration.ts';

const read: readonly (readonly [text: string, ms: number])[] = [
  ['1m', 60_000],
  ['30m', 1_800_000],
  ['160h', 576_000_000],
  ['90d', 7_776_000_000],
  ['10y', 315_360_000_000],
  ['999999m', 59_999_940_000],
];

for (const [text, ms] of read) {
  test(`${text} is ${ms} milliseconds`, () => {
    assert.equal(parseDuration(text), ms);
  });
}

const refused = ['', '0d', '01d', '-1d', '+1d', '1.5d', '1e3d', '90', 'd', '90D', '90 d', ' 90d', '90d '];
const foreign = ['1s', '1w', '1h30m', '1000000m', '90d\n', '９０d'];

for (const text of [...refused, ...foreign]) {
  test(`${JSON.stringify(text)} is not a valid duration`, () => {
    assert.equal(parseDuration(text), undefined);
  });
}
