/** Patterns of names: what they permit, their one form, and what is said about texts that are none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Identifier, parseIdentifier } from '../../../../src/base/identifier.ts';
import {
  NamePatterns,
  namePatternPattern,
  parseNamePattern,
} from '../../../../src/domain/acme-server/clients/name-patterns.ts';

const refused: readonly (readonly [text: string, refusal: RegExp])[] = [
  ['', /^is empty: write a name/],
  ['   ', /^is empty/],
  ['.example.com', /^begins with a dot: write "\*\.example\.com" for every name below example\.com$/],
  ['*example.com', /^has "\*" in the middle/],
  ['www.*.example.com', /^has "\*" in the middle/],
  ['*.*.example.com', /^has "\*" in the middle/],
  ['**', /^has "\*" in the middle/],
  ['*.', /^is not a pattern of names/],
  ['*.10.0.0.1', /^is not a pattern of names/],
  ['https://example.com', /^is a URL or a path/],
  ['example.com/path', /^is a URL or a path/],
  ['example.com:443', /^has a port/],
  ['10.1.2.3/8', /^is not a network: the prefix length is wrong, or bits after the prefix are set/],
  ['10.0.0.0/33', /^is not a network/],
  ['a_b.example.com', /^is not a pattern of names/],
  ['-a.example.com', /^is not a pattern of names/],
  ['a..example.com', /^is not a pattern of names/],
  [`${'a'.repeat(64)}.example.com`, /^is not a pattern of names/],
  ['a b.example.com', /^is not a pattern of names/],
  ['fe80::1%eth0', /^is not a pattern of names/],
];

for (const [text, refusal] of refused) {
  test(`${JSON.stringify(text)} is rejected as a name pattern with the reason`, () => {
    const read = parseNamePattern(text);
    assert('refusal' in read);
    assert.match(read.refusal, refusal);
  });
}

const normal: Readonly<Record<string, string>> = {
  'WWW.Example.COM': 'www.example.com',
  ' *.Example.com. ': '*.example.com',
  '*.internal': '*.internal',
  '*.bücher.example': '*.xn--bcher-kva.example',
  localhost: 'localhost',
  '*': '*',
  '192.0.2.7': '192.0.2.7',
  '192.0.2.7/32': '192.0.2.7',
  '10.0.0.0/8': '10.0.0.0/8',
  '2001:DB8:0::/32': '2001:db8::/32',
};

for (const [text, pattern] of Object.entries(normal)) {
  test(`${JSON.stringify(text)} is normalized to ${pattern}, which matches the JSON Schema pattern`, () => {
    assert.deepEqual(parseNamePattern(text), { pattern });
    assert.deepEqual(parseNamePattern(pattern), { pattern });
    assert.match(pattern, new RegExp(namePatternPattern));
  });
}

const judgments: Readonly<Record<string, readonly [permitted: string[], forbidden: string[]]>> = {
  'example.com': [
    ['example.com', 'EXAMPLE.com'],
    ['*.example.com', 'a.example.com', 'example.com.evil.example', 'notexample.com', 'com'],
  ],
  '*.example.com': [
    ['*.example.com', 'a.example.com', 'A.B.example.com', '*.a.example.com'],
    ['example.com', 'aexample.com', 'a.example.com.evil.example', '192.0.2.1'],
  ],
  '*.internal': [
    ['db.internal', '*.k8s.internal'],
    ['internal', 'internal.example'],
  ],
  '*': [
    ['example.com', '*.example.com', 'localhost'],
    ['192.0.2.1', '2001:db8::1'],
  ],
  '10.0.0.0/8': [
    ['10.0.0.0', '10.255.255.255'],
    ['11.0.0.0', '::ffff:10.0.0.1', 'ten.example'],
  ],
  '192.0.2.7': [['192.0.2.7'], ['192.0.2.8']],
  '2001:db8::/32': [
    ['2001:db8::1', '2001:DB8:1::'],
    ['2001:db9::1', '192.0.2.7'],
  ],
};

for (const [pattern, [permitted, forbidden]] of Object.entries(judgments)) {
  test(`${pattern} permits ${permitted.join(', ')} and not ${forbidden.join(', ')}`, () => {
    const patterns = new NamePatterns([pattern]);
    for (const name of permitted) assert(patterns.permits(identifier(name)), `${name} is permitted`);
    for (const name of forbidden) assert(!patterns.permits(identifier(name)), `${name} is forbidden`);
  });
}

test('a list permits what any of its patterns permits, and an empty one nothing', () => {
  const patterns = new NamePatterns(['a.example', '*.b.example', '192.0.2.0/24']);
  const permitted = ['a.example', 'x.b.example', '192.0.2.1'].map(identifier);
  assert(permitted.every((name) => patterns.permits(name)));
  assert(!patterns.permits(identifier('b.example')));
  assert(!permitted.some((name) => new NamePatterns([]).permits(name)));
});

function identifier(text: string): Identifier {
  const parsed = parseIdentifier(text);
  assert(parsed !== undefined, text);
  return parsed;
}
