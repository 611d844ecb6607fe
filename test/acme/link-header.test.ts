/** Links to alternate chains, as servers write them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alternates } from '../../src/acme/link-header.ts';

const base = 'https://ca.test/cert/1';

const cases: readonly [string | undefined, readonly string[]][] = [
  [undefined, []],
  ['', []],
  ['<https://ca.test/dir>;rel="index"', []],
  ['<https://ca.test/cert/1/1>;rel="alternate"', ['https://ca.test/cert/1/1']],
  ['</cert/1/1>; rel=alternate', ['https://ca.test/cert/1/1']],
  ['<2>; title="a, <b>; rel=x"; REL="Alternate"', ['https://ca.test/cert/2']],
  [
    '<https://ca.test/dir>;rel="index", <a>;rel="alternate" , <b> ; rel = "up alternate",<c>;rel="up",<a>;rel="alternate"',
    ['https://ca.test/cert/a', 'https://ca.test/cert/b'],
  ],
  ['<http://>;rel="alternate"', []],
  ['rel="alternate"', []],
  [`<${'<'.repeat(20_000)}`, []],
  [`<a>${';a=b'.repeat(5000)}!`, []],
];

for (const [header, expected] of cases) {
  test(`alternates of ${header?.slice(0, 60)}`, () => assert.deepEqual(alternates(header, base), expected));
}
