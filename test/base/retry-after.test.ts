/** Both forms of Retry-After, and what is neither. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseRetryAfter } from '../../src/base/retry-after.ts';
import { fuzzRuns } from '../harness/fuzz-runs.ts';

const now = Date.UTC(2026, 10, 21, 12);
const week = 7 * 86_400_000;

const cases: readonly [string | undefined, number | undefined][] = [
  ['0', 0],
  ['1', 1000],
  [' 120 ', 120_000],
  ['604800', week],
  ['604801', week],
  ['9'.repeat(400), week],
  ['Sat, 21 Nov 2026 12:00:30 GMT', 30_000],
  ['Saturday, 21-Nov-26 12:00:30 GMT', 30_000],
  ['Sat Nov 21 12:00:30 2026', 30_000],
  ['Sat, 21 Nov 2026 11:59:59 GMT', 0],
  ['Sat, 21 Nov 2099 12:00:00 GMT', week],
  ['Sat, 41 Nov 2026 12:00:30 GMT', undefined],
  ['2026-11-21T12:00:30Z', undefined],
  ['-1', undefined],
  ['1.5', undefined],
  ['1e3', undefined],
  ['1, 2', undefined],
  ['soon', undefined],
  ['', undefined],
  [undefined, undefined],
];

for (const [header, expected] of cases) {
  test(`Retry-After ${header?.slice(0, 40)} is ${expected} ms`, () => {
    assert.equal(parseRetryAfter(header, now), expected);
  });
}

test('Retry-After in seconds or as a date is limited to one week', () => {
  const property = fc.property(fc.nat(2_000_000), (seconds) => {
    const expected = Math.min(seconds * 1000, week);
    assert.equal(parseRetryAfter(String(seconds), now), expected);
    assert.equal(parseRetryAfter(new Date(now + seconds * 1000).toUTCString(), now), expected);
    assert.equal(parseRetryAfter(new Date(now - seconds * 1000).toUTCString(), now), 0);
  });
  fc.assert(property, fuzzRuns(500));
});

test('parseRetryAfter returns undefined or at most one week for any text', () => {
  const unit = fc.oneof(
    fc.constantFrom('Sat', ', ', '21', ' Nov ', '2026', '12:00:30', ' GMT', '-', '9', ':', '٣'),
    fc.string({ maxLength: 3 }),
  );
  const property = fc.property(fc.string({ unit, maxLength: 10 }), (header) => {
    const wait = parseRetryAfter(header, now);
    assert(wait === undefined || (wait >= 0 && wait <= week), `${wait}`);
  });
  fc.assert(property, fuzzRuns(1000));
});
