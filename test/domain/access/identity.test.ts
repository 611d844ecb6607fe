/** Rights: what an API key may do, asked of one function, and the refusals that give nothing away. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../src/base/problem.ts';
import { type Scope, scopes } from '../../../src/base/scope.ts';
import {
  type ApiKeyIdentity,
  actorName,
  administratorNeeded,
  allows,
  requireScope,
} from '../../../src/domain/access/identity.ts';

const identity = (rights: readonly Scope[], certificates: 'any' | readonly string[]): ApiKeyIdentity => ({
  kind: 'api-key',
  prefix: 'vk_aaaaaaaaaaaa',
  expiresAt: null,
  replacedAt: null,
  id: 7,
  name: 'deploy',
  scopes: new Set(rights),
  certificates: certificates === 'any' ? 'any' : new Set(certificates),
  networks: 'any',
  profiles: 'any',
});

type Case = readonly [
  what: string,
  rights: readonly Scope[],
  certificates: 'any' | readonly string[],
  scope: Scope,
  name: string | undefined,
  allowed: boolean,
];

const cases: readonly Case[] = [
  ['a key with the scope and the certificate', ['certificates:read'], ['a'], 'certificates:read', 'a', true],
  ['a key with the scope for any certificate', ['certificates:read'], 'any', 'certificates:read', 'a', true],
  [
    'a key with the scope when no certificate is requested',
    ['certificates:read'],
    [],
    'certificates:read',
    undefined,
    true,
  ],
  ['a certificate outside the allowlist', ['certificates:read'], ['a'], 'certificates:read', 'b', false],
  ['a name in a different case', ['certificates:read'], ['a'], 'certificates:read', 'A', false],
  ['a prefix of an allowed name', ['certificates:read'], ['a.example'], 'certificates:read', 'a', false],
  [
    'a name that an allowed wildcard would match',
    ['certificates:read'],
    ['*.x'],
    'certificates:read',
    'a.x',
    false,
  ],
  ['the name *', ['certificates:read'], ['a'], 'certificates:read', '*', false],
  ['an empty name', ['certificates:read'], ['a'], 'certificates:read', '', false],
  ['an empty allowlist', ['certificates:read'], [], 'certificates:read', 'a', false],
  ['a key without scopes', [], 'any', 'certificates:read', 'a', false],
  ['a key without scopes when no certificate is requested', [], 'any', 'certificates:read', undefined, false],
];

for (const [what, rights, certificates, scope, name, allowed] of cases) {
  test(`allows returns ${allowed} for ${what}`, () => {
    assert.equal(allows(identity(rights, certificates), scope, name), allowed);
  });
}

test('no scope implies another', () => {
  for (const given of scopes) {
    const allowed = scopes.filter((asked) => allows(identity([given], 'any'), asked, 'a'));
    assert.deepEqual(allowed, [given]);
  }
});

test('requireScope reports the missing scope', () => {
  assert.throws(
    () => requireScope(identity(['certificates:read'], 'any'), 'private_keys:read', 'a'),
    (error) =>
      error instanceof Problem &&
      error.code === 'forbidden' &&
      error.message === 'This API key lacks the scope private_keys:read.',
  );
});

test('requireScope reports neither the rejected certificate nor the allowed ones', () => {
  assert.throws(
    () =>
      requireScope(
        identity(['certificates:read'], ['allowed.example']),
        'certificates:read',
        'wanted.example',
      ),
    (error) =>
      error instanceof Problem &&
      error.code === 'forbidden' &&
      error.message === 'This certificate is not in the allowlist of the API key.' &&
      !JSON.stringify(error.body).includes('.example'),
  );
});

test('requireScope passes when the scope and the certificate are allowed', () => {
  requireScope(identity(['certificates:read'], ['a']), 'certificates:read', 'a');
});

test('actorName identifies an API key by its id and name', () => {
  assert.equal(actorName(identity([], [])), 'api-key:7:deploy');
});

test('an administrator may do everything that keys can, with any certificate, and is identified by name', () => {
  const session = { id: 1, administratorId: 1, createdAt: 0, expiresAt: 1 };
  const alice = { kind: 'administrator', name: 'alice', session } as const;
  for (const scope of scopes) {
    for (const name of [undefined, 'a', 'absent', '*']) {
      assert.equal(allows(alice, scope, name), true);
      requireScope(alice, scope, name);
    }
  }
  assert.equal(actorName(alice), 'admin:alice');
});

test('administratorNeeded has status 403 and says that an administrator session is required', () => {
  const { status, detail } = administratorNeeded().body;
  assert.equal(status, 403);
  assert.match(detail, /requires an administrator session/);
});
