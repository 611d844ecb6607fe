/** The rules from claims to role and name, as tables. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Role } from '../../../src/base/role.ts';
import {
  type Claims,
  mergedClaims,
  nameIn,
  profilesIn,
  reachIn,
  roleIn,
} from '../../../src/domain/oidc/claims.ts';

const values = { viewer: ['v'], operator: ['o', '/team/web'], admin: ['CN=Admins,OU=Groups'] };
const mapping = { claim: 'groups', values, byDefault: undefined };

const rolesOf: readonly (readonly [groups: unknown, role: string | undefined])[] = [
  [['v'], 'viewer'],
  ['o', 'operator'],
  [['o', 'v', 'CN=Admins,OU=Groups'], 'admin'],
  [['/team/web', 7, null], 'operator'],
  [['V', 'o '], undefined],
  [[['v']], undefined],
  [{ v: true }, undefined],
  [true, undefined],
  [undefined, undefined],
];

test('the highest role counts, of texts that match exactly', () => {
  for (const [groups, role] of rolesOf)
    assert.equal(roleIn({ groups }, mapping), role, JSON.stringify(groups));
  assert.equal(roleIn({}, { ...mapping, claim: '__proto__' }), undefined);
  assert.equal(roleIn({}, { ...mapping, byDefault: 'viewer' }), 'viewer');
});

const reach = [
  { value: 'v', label: 'team=web' },
  { value: 'o', label: 'team=db' },
  { value: 'sre', label: undefined },
];

const reachesOf: readonly (readonly [groups: unknown, role: Role, labels: readonly string[] | undefined])[] =
  [
    [['v'], 'viewer', ['team=web']],
    [['o', 'v', 'v'], 'operator', ['team=db', 'team=web']],
    [['o', 'sre'], 'operator', []],
    [['x'], 'operator', undefined],
    [undefined, 'viewer', undefined],
    [['x'], 'admin', []],
  ];

test('the values of the claim confine to their labels, and who has none of them is refused', () => {
  for (const [groups, role, labels] of reachesOf)
    assert.deepEqual(reachIn({ groups }, { roles: mapping, reach }, role), labels, JSON.stringify(groups));
  assert.deepEqual(reachIn({}, { roles: mapping }, 'viewer'), []);
});

const profiles = [
  { value: 'web', profile: 'local-ca/web' },
  { value: 'db', profile: 'local-ca/db' },
  { value: 'dba', profile: 'local-ca/db' },
  { value: 'sre', profile: undefined },
];

const profilesOf: readonly (readonly [groups: unknown, role: Role, names: readonly string[] | undefined])[] =
  [
    [['o', 'web'], 'operator', ['local-ca/web']],
    [['web', 'dba', 'db'], 'operator', ['local-ca/db', 'local-ca/web']],
    ['db', 'operator', ['local-ca/db']],
    [['web', 'sre'], 'operator', []],
    [['o', 'WEB'], 'operator', undefined],
    [undefined, 'operator', undefined],
    [['x'], 'viewer', []],
    [['web'], 'viewer', []],
    [['web'], 'admin', []],
  ];

test('the values of the claim confine operators to their profiles, and an operator with none of them is refused', () => {
  for (const [groups, role, names] of profilesOf) {
    const found = profilesIn({ groups }, { roles: mapping, profiles }, role);
    assert.deepEqual(found, names, `${role} ${JSON.stringify(groups)}`);
  }
  assert.deepEqual(profilesIn({}, { roles: mapping }, 'operator'), []);
  assert.deepEqual(profilesIn({}, { roles: mapping, profiles: [] }, 'operator'), []);
});

const names: readonly (readonly [claims: Claims, name: string | undefined])[] = [
  [{ preferred_username: 'alice', email: 'a@b.test', email_verified: true, sub: '1' }, 'alice'],
  [{ preferred_username: 'Alice B', email: 'a@b.test', email_verified: true, sub: '1' }, 'a@b.test'],
  [{ email: 'a@b.test', sub: '1' }, '1'],
  [{ preferred_username: 'a@b.test', email: 'a@b.test', email_verified: false, sub: '1' }, '1'],
  [{ preferred_username: '../x', sub: 'auth0|7' }, undefined],
];

test('the name comes from a username or a verified address, otherwise it is the subject', () => {
  for (const [claims, name] of names) assert.equal(nameIn(claims), name, JSON.stringify(claims));
});

test('an address is verified only by the response that has it', () => {
  const address = { email: 'a@b.test' };
  const verified = { ...address, email_verified: true };
  assert.equal(mergedClaims(address, verified).email_verified, true);
  assert.equal(mergedClaims(address, { ...verified, email: 'c@d.test' }).email_verified, undefined);
  assert.equal(mergedClaims({}, verified).email_verified, true);
});
