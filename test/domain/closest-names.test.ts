/** Closest names: what is a slip of the fingers away is offered, and nothing else is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closestNames, didYouMean } from '../../src/domain/closest-names.ts';

const names = ['www.example.com', 'wwww.example.com', 'api.example.com', 'mail.example.org', 'db', 'a'];

const cases: readonly (readonly [what: string, name: string, expected: readonly string[]])[] = [
  ['one letter missing', 'ww.example.com', ['www.example.com', 'wwww.example.com', 'api.example.com']],
  ['different case', 'WWW.EXAMPLE.COM', ['www.example.com', 'wwww.example.com', 'api.example.com']],
  ['two letters swapped', 'mial.example.org', ['mail.example.org']],
  ['one of two letters wrong', 'dc', ['db']],
  ['a name unlike all others', 'warehouse-7', []],
  ['a short name without common letters', 'xyz', []],
];

for (const [what, name, expected] of cases) {
  test(`${what}: for ${name}, closestNames returns ${expected.join(' or ') || 'nothing known'}`, () => {
    assert.deepEqual(closestNames(name, names), expected);
  });
}

test('closestNames returns at most three names, the closest first, without the distant one', () => {
  assert.deepEqual(closestNames('cert-10', ['cert-2345', 'cert-23', 'cert-11']), ['cert-11', 'cert-23']);
  const close = closestNames('cert-10', ['cert-23', 'cert-1', 'cert-11', 'cert-10x', 'cert-45']);
  assert.deepEqual(close, ['cert-1', 'cert-11', 'cert-10x']);
});

test('didYouMean suggests the closest names, or returns the fallback sentence', () => {
  const otherwise = 'List them.';
  assert.equal(didYouMean('dc', names, otherwise), 'Did you mean "db"?');
  assert.equal(didYouMean('ab', ['abc', 'abd'], otherwise), 'Did you mean "abc" or "abd"?');
  assert.equal(didYouMean('zzzzzzzz', names, otherwise), otherwise);
  assert.equal(didYouMean('a', [], otherwise), otherwise);
});
