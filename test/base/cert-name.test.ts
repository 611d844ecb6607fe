/** Names of certificates: the documented alphabet, all of it and nothing else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseCertName } from '../../src/base/cert-name.ts';

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789*._-';

for (const name of [
  'a',
  'www.example.com',
  '*.example.com',
  '_x',
  '-x',
  'a.',
  '**',
  'A_b-9',
  'x'.repeat(128),
]) {
  test(`${name.slice(0, 20)} is a valid name and is returned unchanged`, () => {
    assert.equal(parseCertName(name), name);
  });
}

const refused = [
  '',
  '*',
  '.',
  '..',
  '.hidden',
  'x'.repeat(129),
  'a b',
  'a/b',
  'a\\b',
  'a\n',
  '\na',
  'é',
  'a%2e',
  'a\0',
];
for (const text of refused) {
  test(`${JSON.stringify(text.slice(0, 20))} is not a name`, () => {
    assert.equal(parseCertName(text), undefined);
  });
}

test('any text in the alphabet is a valid name unless it is a single *, too long or begins with a dot', () => {
  const text = fc.string({ unit: fc.constantFrom(...alphabet), minLength: 1, maxLength: 140 });
  fc.assert(
    fc.property(text, (name) => {
      const isName = name !== '*' && name.length <= 128 && name[0] !== '.';
      assert.equal(parseCertName(name), isName ? name : undefined);
    }),
  );
});

test('a name with one character outside the alphabet is rejected', () => {
  const foreign = fc
    .string({ unit: 'binary', minLength: 1, maxLength: 1 })
    .filter((c) => !alphabet.includes(c));
  const part = fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 20 });
  fc.assert(
    fc.property(part, foreign, part, (before, character, after) => {
      assert.equal(parseCertName(before + character + after), undefined);
    }),
  );
});
