/** Closest names: what is a slip of the fingers away is offered, and nothing else is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closestNames, didYouMean } from '../../src/domain/closest-names.ts';

const names = ['www.example.com', 'wwww.example.com', 'api.example.com', 'mail.example.org', 'db', 'a'];

const cases: readonly (readonly [what: string, name: string, expected: readonly string[]])[] = [
  ['one letter missing', 'ww.example.com', ['www.example.com', 'wwww.example.com', 'api.example.com']],
  ['another case', 'WWW.EXAMPLE.COM', ['www.example.com', 'wwww.example.com', 'api.example.com']],
  ['two letters exchanged', 'mial.example.org', ['mail.example.org']],
  ['one letter of two', 'dc', ['db']],
  ['a name that is nothing like the others', 'warehouse-7', []],
  ['a short name that shares nothing', 'xyz', []],
];

for (const [what, name, expected] of cases) {
  test(`${what}: ${name} means ${expected.join(' or ') || 'nothing known'}`, () => {
    assert.deepEqual(closestNames(name, names), expected);
  });
}

test('at most three are offered, the closest first', () => {
  const close = closestNames('cert-10', ['cert-2345', 'cert-1', 'cert-11', 'cert-10x', 'cert-12']);
  assert.equal(close.length, 3);
  assert(!close.includes('cert-2345'));
});

test('the sentence offers the names, or says where to look', () => {
  const otherwise = 'List them.';
  assert.equal(didYouMean('dc', names, otherwise), 'Did you mean "db"?');
  assert.equal(didYouMean('ab', ['abc', 'abd'], otherwise), 'Did you mean "abc" or "abd"?');
  assert.equal(didYouMean('zzzzzzzz', names, otherwise), otherwise);
  assert.equal(didYouMean('a', [], otherwise), otherwise);
});
