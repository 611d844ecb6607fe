/**
 * No regular expression in the product takes superlinear time, whatever text it gets; and the check that says so can
 * fail.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { readInstaller } from '../src/cli/runtime/assets.ts';
import {
  constructed,
  constructedPatterns,
  type PatternFacts,
  readPatterns,
  shellBackReferences,
  slowPatterns,
} from './pattern-rules.ts';

const a = (text: string) => readPatterns('src/http/a.ts', `export const a = (b: string) => ${text};`);

/** What is wrong, and how the complaint begins. */
const slow: readonly (readonly [title: string, source: PatternFacts, complaint: RegExp])[] = [
  [
    'three repetitions that meet on spaces',
    a(String.raw`/^\s*([^=]*?)\s*=\s*(.*?)\s*$/s.exec(b)`),
    /^src\/http\/a\.ts: .* takes 3rd degree polynomial time/,
  ],
  [
    'a repetition before the end that can begin anywhere',
    a(String.raw`b.replace(/\s+$/, '')`),
    /takes 2nd degree polynomial time/,
  ],
  ['a repetition inside a repetition', a('/^(a+)+$/.test(b)'), /takes exponential time/],
  ['a back-reference', a(String.raw`/^(.+?)\1+$/.test(b)`), /cannot be judged/],
  [
    'a component of the console',
    readPatterns('assets/console/a.tsx', 'export const a = () => <p>{/(a|a)*$/.test(b)}</p>;'),
    /exponential/,
  ],
];

const files = globSync(['src/**/*.ts', 'assets/**/*.{ts,tsx}']);
const product = files.map((path) => readPatterns(path.replaceAll('\\', '/'), readFileSync(path, 'utf8')));

test('no regular expression takes superlinear time', () => {
  assert(product.flatMap(({ patterns }) => patterns).length > 200, 'the expressions were not found');
  assert.deepEqual(slowPatterns(product), []);
});

test('slowPatterns does not report linear patterns', () => {
  assert.deepEqual(
    slowPatterns([a(String.raw`/^[a-z]+(-[a-z]+)*$/.test(b.trimEnd()) && b.split(/\s+/)`)]),
    [],
  );
});

for (const [title, source, complaint] of slow) {
  test(`slowPatterns reports ${title}`, () => {
    const complaints = slowPatterns([source]);
    assert.equal(complaints.length, 1);
    assert.match(complaints[0] ?? '', complaint);
  });
}

test('no regular expression is built from text', () => {
  assert.deepEqual(constructedPatterns(product), []);
  assert.equal(constructedPatterns([a('new RegExp(b)')]).length, 1);
  assert.equal(constructedPatterns([a('RegExp(b).test(b)')]).length, 1);
  assert.equal(constructedPatterns([a('(c: RegExp, d: Map<string, RegExp>) => c.test(b)')]).length, 0);
  assert.deepEqual(
    product.filter(({ constructs }) => constructs).map(({ path }) => path),
    Object.keys(constructed),
  );
});

test('no pattern in the client installer has a back-reference', () => {
  assert.deepEqual(shellBackReferences(readInstaller()), []);
  const script = String.raw`sed 's/^\(.*\)\1$/x/' a
grep -e '\(a*\)\1'
sed 's/\(b\)/\1/'
sed 's|\\1|c|'`;
  assert.equal(shellBackReferences(script).length, 2);
});
