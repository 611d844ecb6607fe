/** The session in a Cookie header: exactly one, or none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSession, sessionCookieName } from '../../../src/http/auth/session-cookie.ts';

const cases: readonly (readonly [header: string | undefined, token: string | undefined])[] = [
  [undefined, undefined],
  ['', undefined],
  ['vault_session=abc', 'abc'],
  ['a=1; vault_session=abc; b=2', 'abc'],
  ['a=1;vault_session=abc;b=2', 'abc'],
  [' vault_session = abc ', 'abc'],
  ['vault_session=a.b-c_d==', 'a.b-c_d=='],
  ['vault_session=', undefined],
  ['vault_session', undefined],
  ['VAULT_SESSION=abc', undefined],
  ['vault_session2=abc', undefined],
  ['xvault_session=abc', undefined],
  ['a=vault_session=abc', undefined],
  ['vault_session=abc; vault_session=def', undefined],
  ['vault_session=abc; vault_session=abc', undefined],
  ['vault_session=; vault_session=abc', undefined],
  [';;;', undefined],
];

for (const [header, token] of cases) {
  test(`${JSON.stringify(header)} holds ${token ?? 'no session'}`, () => {
    assert.equal(readSession(header), token);
  });
}

test('only the __Host- cookie is accepted over HTTPS', () => {
  const name = sessionCookieName('https://vault.example.test');
  assert.equal(name, '__Host-vault_session');
  assert.equal(readSession('vault_session=forged; __Host-vault_session=abc', name), 'abc');
  assert.equal(readSession('vault_session=forged', name), undefined);
  assert.equal(sessionCookieName('http://vault.example.test'), 'vault_session');
  assert.equal(sessionCookieName(''), 'vault_session');
});
