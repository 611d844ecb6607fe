/** Moments in options: all ways to write them, and what is none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Direction, parseMoment } from '../../src/base/moment.ts';
import { formatTimestamp } from '../../src/base/timestamp.ts';

const now = Date.parse('2026-11-23T01:49:08.123Z');

const good: readonly (readonly [text: string, direction: Direction, at: string])[] = [
  ['2h', 'ago', '2026-11-22T23:49:08.123Z'],
  ['7d', 'ago', '2026-11-16T01:49:08.123Z'],
  ['90d', 'ahead', '2027-02-21T01:49:08.123Z'],
  ['30m', 'ahead', '2026-11-23T02:19:08.123Z'],
  ['1y', 'ahead', '2027-11-23T01:49:08.123Z'],
  ['999y', 'ago', '1970-01-01T00:00:00Z'],
  ['2027-01-01', 'ahead', '2027-01-01T00:00:00Z'],
  ['2027-01-01', 'ago', '2027-01-01T00:00:00Z'],
  ['2028-02-29', 'ahead', '2028-02-29T00:00:00Z'],
  ['2027-01-01T12:30:00Z', 'ahead', '2027-01-01T12:30:00Z'],
  ['2027-01-01t12:30:00.5z', 'ago', '2027-01-01T12:30:00.500Z'],
  ['2027-01-01T00:30:00+02:00', 'ahead', '2026-12-31T22:30:00Z'],
];

for (const [text, direction, at] of good) {
  test(`${text}, ${direction}, is ${at}`, () => {
    assert.equal(formatTimestamp(parseMoment(text, now, direction) ?? assert.fail()), at);
  });
}

const bad = [
  ...['', ' ', 'soon', 'tomorrow', 'now', '90', '0d', '-1d', '1.5d', '90 d', '90D', '2w', '1d12h', '999999y'],
  ...['2027', '2027-01', '2027-1-1', '01.01.2027', '01/02/2027', '2027-02-29', '2027-13-01', '2027-00-10'],
  ...['2027-01-01T12:30:00', '2027-01-01 12:30:00Z', '2027-01-01T25:00:00Z', '2027-01-01Z', '1795392000'],
  ...['2027-01-01\n', '２０２７-01-01'],
];

for (const text of bad) {
  test(`${JSON.stringify(text)} is not a valid time`, () => {
    assert.equal(parseMoment(text, now, 'ahead'), undefined);
  });
}
