/** No regular expression in the product takes superlinear time, whatever text it gets; and the check that says so can fail. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  constructed,
  constructedPatterns,
  shellBackReferences,
  slowPatterns,
} from './harness/pattern-rules.ts';
import { readHouses, type Sources } from './harness/source-facts.ts';

const a = (text: string): Sources => ({ 'src/http/a.ts': `export const a = (b: string) => ${text};` });

/** What is wrong, and how the complaint begins. */
const slow: readonly (readonly [title: string, sources: Sources, complaint: RegExp])[] = [
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
  ['a component of the console', { 'assets/console/a.tsx': 'export const a = /(a|a)*$/;' }, /exponential/],
];

const files = globSync(['src/**/*.ts', 'assets/**/*.{ts,tsx}']);
const linear = a(String.raw`/^[a-z]+(-[a-z]+)*$/.test(b.trimEnd()) && b.split(/\s+/)`);
const fromText = a('new RegExp(b)');
const [product = [], fast = [], built = [], ...broken] = readHouses([
  Object.fromEntries(files.map((path) => [path.replaceAll('\\', '/'), readFileSync(path, 'utf8')])),
  linear,
  fromText,
  ...slow.map(([, sources]) => sources),
]);

test('no regular expression takes superlinear time', () => {
  assert(product.flatMap(({ patterns }) => patterns).length > 200, 'the expressions were not found');
  assert.deepEqual(slowPatterns(product), []);
});

test('what is linear is let through', () => assert.deepEqual(slowPatterns(fast), []));

for (const [index, [title, , complaint]] of slow.entries()) {
  test(`caught: ${title}`, () => {
    const complaints = slowPatterns(broken[index] ?? []);
    assert.equal(complaints.length, 1);
    assert.match(complaints[0] ?? '', complaint);
  });
}

test('no regular expression is made from text', () => {
  assert.deepEqual(constructedPatterns(product), []);
  assert.equal(constructedPatterns(built).length, 1);
  const paths = product.filter(({ globals }) => globals.some((name) => name.includes('RegExp')));
  assert.deepEqual(
    paths.map(({ path }) => path),
    Object.keys(constructed),
  );
});

test('no pattern in the client installer has a back-reference', () => {
  assert.deepEqual(shellBackReferences(readFileSync('assets/install.sh', 'utf8')), []);
  const script = String.raw`sed 's/^\(.*\)\1$/x/' a
grep -e '\(a*\)\1'
sed 's/\(b\)/\1/'
sed 's|\\1|c|'`;
  assert.equal(shellBackReferences(script).length, 2);
});
