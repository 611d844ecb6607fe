/** Passwords: long ones that nobody tries first are taken, whatever they are made of. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { passwordIssue } from '../../../src/domain/access/password-policy.ts';

const refused: readonly (readonly [password: string, why: RegExp])[] = [
  ['', /at least 12/],
  ['Tr0ub4dor&3', /at least 12/],
  ['🔑'.repeat(11), /at least 12/],
  ['e\u0301'.repeat(11), /at least 12/],
  [`several words ${'x'.repeat(1024)}`, /at most 1024 bytes/],
  ['ä'.repeat(513), /at most 1024 bytes/],
  ['aaaaaaaaaaaaaaaa', /too common/],
  ['121212121212121', /too common/],
  ['123456789012', /too common/],
  ['1q2w3e4r5t6y', /too common/],
  ['Counterstrike', /too common/],
  ['password1234', /too common/],
  ['!!!PassWord2026', /too common/],
  ['passwordpassword', /too common/],
  ['dragondragondragon', /too common/],
  ['alice.example', /too similar to the name/],
  ['ALICE.EXAMPLE1234', /too similar to the name/],
  ['my-Alice.Example', /too similar to the name/],
];

for (const [password, why] of refused) {
  test(`passwordIssue rejects ${JSON.stringify(password.slice(0, 20))}`, () => {
    const complaint = passwordIssue('alice.example', password) ?? '';
    assert.match(complaint, why);
    assert(password.length < 5 || !complaint.includes(password), 'the answer does not repeat it');
  });
}

for (const password of [
  'correct horse battery staple',
  'ktzq vbnw rplm',
  '🔑🗝🔒🔓🔐🛡🧱🚪🏠🏡🏢🏣',
  'пароль из слов',
  'password of the second kitchen',
  'alice.example likes long walks',
  ' spaces count ',
]) {
  test(`passwordIssue accepts ${password}`, () =>
    assert.equal(passwordIssue('alice.example', password), undefined));
}
