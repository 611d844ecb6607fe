/** Links to alternate chains, as servers write them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { alternates } from '../../src/acme/issued-certificate.ts';
import { fuzzRuns } from '../harness/fuzz-runs.ts';

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
  test(`alternates returns the expected URLs for ${header?.slice(0, 60)}`, () =>
    assert.deepEqual(alternates(header, base), expected));
}

test('alternates finds alternate links among other links in any parameter syntax', () => {
  const target = fc.stringMatching(/^[a-z0-9/._-]{1,12}$/).map((path) => `https://ca.test/${path}`);
  const relation = fc.constantFrom('alternate', 'ALTERNATE', 'index', 'up', 'up alternate', 'alternates', '');
  const other = fc.constantFrom(
    '',
    ';title="a, b; rel=alternate"',
    '; x=y',
    ';\ttype="text/plain"',
    ' ; rev=alternate',
  );
  const one = fc.record({ target, relation, before: other, after: other, isQuoted: fc.boolean() });
  const property = fc.property(
    fc.array(one, { maxLength: 6 }),
    fc.constantFrom(', ', ',', ' ,\t'),
    (links, comma) => {
      const header = links.map(({ target: url, relation: rel, before, after, isQuoted }) => {
        const value = isQuoted || /[ ]|^$/.test(rel) ? `"${rel}"` : rel;
        return `<${url}>${before}; rel=${value}${after}`;
      });
      const expected = links.filter(({ relation: rel }) =>
        rel.toLowerCase().split(' ').includes('alternate'),
      );
      assert.deepEqual(alternates(header.join(comma), base), [
        ...new Set(expected.map((link) => new URL(link.target).href)),
      ]);
    },
  );
  fc.assert(property, fuzzRuns(500));
});

test('alternates never throws and returns only absolute URLs for any text', () => {
  const unit = fc.oneof(
    fc.constantFrom('<', '>', ';', ',', '"', '=', 'rel', 'alternate', ' ', 'http://', '<a>;rel=alternate'),
    fc.string({ maxLength: 2 }),
  );
  const property = fc.property(fc.string({ unit, maxLength: 40 }), (header) => {
    for (const url of alternates(header, base)) assert.equal(new URL(url).href, url);
  });
  fc.assert(property, fuzzRuns(1000));
});
