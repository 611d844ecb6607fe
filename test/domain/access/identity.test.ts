/** Rights: what an API key may do, asked of one function, and the refusals that give nothing away. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../src/base/problem.ts';
import { type Role, roles } from '../../../src/base/role.ts';
import { type Scope, scopes } from '../../../src/base/scope.ts';
import {
  type ApiKeyIdentity,
  actorName,
  administratorNeeded,
  requireRole,
  requireScope,
  scopesOfRole,
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
  role: null,
  clientCertificate: null,
  certificateLabels: [],
  reach: 'any',
});

const administrator = (role: Role) =>
  ({
    kind: 'administrator',
    name: 'alice',
    role,
    reach: 'any',
    profiles: 'any',
    scopes: new Set(scopesOfRole(role)),
    signIn: 'password',
    hasSecondFactor: false,
    session: { id: 1, administratorId: 1, createdAt: 0, expiresAt: 1 },
  }) as const;

/** Whether `requireScope` lets the identity pass; any other error than a refusal fails. */
function allows(...call: Parameters<typeof requireScope>): boolean {
  try {
    requireScope(...call);
    return true;
  } catch (error) {
    assert(error instanceof Problem && error.code === 'forbidden');
    return false;
  }
}

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
  test(`requireScope ${allowed ? 'allows' : 'refuses'} ${what}`, () => {
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

test('actorName identifies an API key by its id and name', () => {
  assert.equal(actorName(identity([], [])), 'api-key:7:deploy');
});

const rights: Readonly<Record<Role, readonly Scope[]>> = {
  viewer: ['certificates:read'],
  operator: ['certificates:read', 'renewals:trigger', 'certificates:sign'],
  admin: scopes,
};

for (const role of roles) {
  test(`an administrator with the role ${role} has its scopes for any certificate`, () => {
    for (const name of [undefined, 'a', 'absent', '*']) {
      const allowed = scopes.filter((scope) => allows(administrator(role), scope, name));
      assert.deepEqual(allowed, rights[role]);
    }
    assert.deepEqual(scopesOfRole(role), rights[role]);
  });
}

test('each role includes those before it, and a key without a role has none', () => {
  for (const [index, role] of roles.entries()) {
    for (const [needed, name] of roles.entries()) {
      for (const who of [administrator(role), { ...identity([], []), role }]) {
        if (needed <= index) requireRole(who, name);
        else
          assert.throws(
            () => requireRole(who, name),
            new RegExp(`requires the role ${name}; .* ${role}\\.$`),
          );
      }
    }
  }
  assert.throws(() => requireRole(identity(scopes, 'any'), 'viewer'), /requires an administrator session/);
});

test('actorName identifies an administrator by name', () => {
  assert.equal(actorName(administrator('admin')), 'admin:alice');
});

test('administratorNeeded has status 403 and says that an administrator session is required', () => {
  const { status, detail } = administratorNeeded().body;
  assert.equal(status, 403);
  assert.match(detail, /requires an administrator session/);
});
