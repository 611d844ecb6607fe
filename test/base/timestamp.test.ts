/** Timestamps: RFC 3339 and nothing else comes in, UTC with `Z` goes out. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatTimestamp, parseTimestamp } from '../../src/base/timestamp.ts';
import { fuzzRuns } from '../harness/fuzz-runs.ts';

const read: readonly (readonly [text: string, utc: string])[] = [
  ['2026-11-21T12:00:00Z', '2026-11-21T12:00:00.000Z'],
  ['2026-11-21t12:00:00z', '2026-11-21T12:00:00.000Z'],
  ['2026-11-21T12:00:00.5Z', '2026-11-21T12:00:00.500Z'],
  ['2026-11-21T12:00:00.123456789Z', '2026-11-21T12:00:00.123Z'],
  ['2026-11-21T12:00:00+02:00', '2026-11-21T10:00:00.000Z'],
  ['2026-11-21T12:00:00-05:30', '2026-11-21T17:30:00.000Z'],
  ['2026-11-21T12:00:00-00:00', '2026-11-21T12:00:00.000Z'],
  ['2026-01-01T00:00:00+23:59', '2025-12-31T00:01:00.000Z'],
  ['2024-02-29T23:59:59Z', '2024-02-29T23:59:59.000Z'],
  ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000Z'],
  ['1969-12-31T23:59:59Z', '1969-12-31T23:59:59.000Z'],
  ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
];

for (const [text, utc] of read) {
  test(`${text} is ${utc}`, () => {
    assert.equal(parseTimestamp(text), Date.parse(utc));
  });
}

const refused: readonly string[] = [
  '',
  'tomorrow',
  '1763726400000',
  '2026-11-21',
  '2026-11-21T12:00:00',
  '2026-11-21T12:00Z',
  '2026-11-21 12:00:00Z',
  ' 2026-11-21T12:00:00Z',
  '2026-11-21T12:00:00Z\n',
  '2026-11-21T12:00:00.Z',
  '2026-11-21T12:00:00,5Z',
  '2026-11-21T12:00:00+0200',
  '2026-11-21T12:00:00+02',
  '2026-11-21T12:00:00+24:00',
  '2026-11-21T12:00:00+02:60',
  '2026-02-30T00:00:00Z',
  '2026-02-29T00:00:00Z',
  '1900-02-29T00:00:00Z',
  '2026-04-31T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-00-01T00:00:00Z',
  '2026-01-00T00:00:00Z',
  '2026-11-21T24:00:00Z',
  '2026-11-21T12:60:00Z',
  '2026-12-31T23:59:60Z',
  '226-11-21T12:00:00Z',
  '+002026-11-21T12:00:00Z',
  '-2026-11-21T12:00:00Z',
  '9999-12-31T23:59:59-00:01',
  '0000-01-01T00:00:00+00:01',
  '２０２６-11-21T12:00:00Z',
];

for (const text of refused) {
  test(`${JSON.stringify(text)} is not a valid timestamp`, () => {
    assert.equal(parseTimestamp(text), undefined);
  });
}

test('a time is written in UTC, with a fraction only if it has one', () => {
  assert.equal(formatTimestamp(Date.UTC(2026, 10, 21, 12)), '2026-11-21T12:00:00Z');
  assert.equal(formatTimestamp(Date.UTC(2026, 10, 21, 12, 0, 0, 50)), '2026-11-21T12:00:00.050Z');
});

test('formatTimestamp equals toISOString without .000, and throws RangeError for invalid times', () => {
  const latest = 8.64e15;
  fc.assert(
    fc.property(fc.integer({ min: -latest, max: latest }), fc.boolean(), (any, isWhole) => {
      const ms = isWhole ? Math.trunc(any / 1000) * 1000 : any;
      assert.equal(formatTimestamp(ms), new Date(ms).toISOString().replace('.000Z', 'Z'));
    }),
    {
      ...fuzzRuns(5000),
      examples: [
        [-1, false],
        [0, false],
        [-latest, false],
        [latest, false],
        [86_399_999, false],
      ],
    },
  );
  assert.equal(formatTimestamp(1999.9), '1970-01-01T00:00:01.999Z');
  assert.equal(formatTimestamp(-0.9), '1970-01-01T00:00:00Z');
  for (const none of [Number.NaN, Number.POSITIVE_INFINITY, 8.65e15]) {
    assert.throws(() => formatTimestamp(none), RangeError);
  }
});

test('parseTimestamp reads the output of formatTimestamp back as the same time', () => {
  const max = Date.parse('9999-12-31T23:59:59.999Z');
  fc.assert(
    fc.property(fc.integer({ min: Date.parse('0001-01-01T00:00:00Z'), max }), (ms) => {
      assert.equal(parseTimestamp(formatTimestamp(ms)), ms);
    }),
  );
});
