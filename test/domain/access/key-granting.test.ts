/** Who creates an API key cannot give it what they do not have. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../src/base/problem.ts';
import { type Role, roles } from '../../../src/base/role.ts';
import { type ApiKeyIdentity, type Identity, scopesOfRole } from '../../../src/domain/access/identity.ts';
import { requireGrantable } from '../../../src/domain/access/key-granting.ts';
import { createApiKeyInput, parseInput } from '../../../src/domain/inputs.ts';
import { parseIpNetwork } from '../../../src/net/ip-network.ts';

const person = (role: Role): Identity => ({
  kind: 'administrator',
  name: 'alice',
  role,
  reach: 'any',
  profiles: 'any',
  scopes: new Set(scopesOfRole(role)),
  signIn: 'password',
  hasSecondFactor: false,
  session: { id: 1, administratorId: 1, createdAt: 0, expiresAt: 1 },
});

const key = (rights: Partial<ApiKeyIdentity>): Identity => ({
  ...{ kind: 'api-key', id: 1, name: 'ci', prefix: 'vk_aaaaaaaaaaaa', role: 'operator' },
  scopes: new Set(['certificates:read', 'certificates:sign']),
  ...{ certificates: 'any', profiles: 'any', networks: 'any', expiresAt: null, replacedAt: null },
  ...{ clientCertificate: null, certificateLabels: [], reach: 'any' },
  ...rights,
});

const networks = (...texts: readonly string[]) =>
  texts.map((text) => parseIpNetwork(text) ?? assert.fail(`${text} is no network`));

const read = { scopes: ['certificates:read'] };
const sign = { scopes: ['certificates:sign'] };
const end = Date.UTC(2030, 0, 1);

/** The certificate `shop` has the label team=web, and no other has any. */
const labels = { of: (name: string) => (name === 'shop' ? ['team=web'] : []) };
const web = { reach: ['team=web'] };

/** Who, what the new key has besides a name and all certificates, and what is refused. */
const cases: readonly (readonly [string, Identity, Record<string, unknown>, RegExp | undefined])[] = [
  ['an admin: everything', person('admin'), { scopes: ['private_keys:read'], role: 'admin' }, undefined],
  ['an operator: reading', person('operator'), read, undefined],
  ['an operator: the same role', person('operator'), { ...read, role: 'operator' }, undefined],
  [
    'an operator: private keys',
    person('operator'),
    { scopes: ['private_keys:read'] },
    /scope private_keys:read/,
  ],
  [
    'a bound key: another without a client certificate',
    key({ clientCertificate: { id: 7, name: 'web-1' } }),
    read,
    /work without the client certificate web-1/,
  ],
  [
    'a bound key: another with a different one',
    key({ clientCertificate: { id: 7, name: 'web-1' } }),
    { ...read, client_certificate: 'web-2' },
    /work without the client certificate web-1/,
  ],
  [
    'a bound key: another with the same',
    key({ clientCertificate: { id: 7, name: 'web-1' } }),
    { ...read, client_certificate: 'web-1' },
    undefined,
  ],
  ['an operator: a greater role', person('operator'), { ...read, role: 'admin' }, /role admin/],
  [
    'a key with the role admin: everything',
    key({ role: 'admin' }),
    { scopes: ['private_keys:read'] },
    undefined,
  ],
  ['a key: its own scopes', key({}), read, undefined],
  ['a key: another scope', key({}), { scopes: ['renewals:trigger'] }, /scope renewals:trigger/],
  [
    'a key with the scope: private keys',
    key({ scopes: new Set(['private_keys:read']) }),
    { scopes: ['private_keys:read'] },
    undefined,
  ],
  ['a key: a greater role', key({}), { ...read, role: 'admin' }, /role admin/],
  ['a key for one certificate: all', key({ certificates: new Set(['a']) }), read, /certificate \*/],
  [
    'a key for one certificate: another',
    key({ certificates: new Set(['a']) }),
    { ...read, certificates: ['a', 'b'] },
    /certificate b/,
  ],
  [
    'a key for two certificates: one of them',
    key({ certificates: new Set(['a', 'b']) }),
    { ...read, certificates: ['b'] },
    undefined,
  ],
  ['a key of a network: any', key({ networks: networks('10.0.0.0/8') }), read, /network \*/],
  [
    'a key of a network: a part of it',
    key({ networks: networks('10.0.0.0/8', '2001:db8::/32') }),
    { ...read, allowed_networks: ['10.1.0.0/16', '2001:db8::7'] },
    undefined,
  ],
  [
    'a key of a network: a wider one',
    key({ networks: networks('10.1.0.0/16') }),
    { ...read, allowed_networks: ['10.0.0.0/8'] },
    /network 10\.0\.0\.0\/8/,
  ],
  [
    'a key of a network: another one',
    key({ networks: networks('10.1.0.0/16') }),
    { ...read, allowed_networks: ['10.1.2.3', '10.2.0.1'] },
    /network 10\.2\.0\.1/,
  ],
  ['a key of a profile: any', key({ profiles: new Set(['ca/web']) }), sign, /profile \*/],
  [
    'a key of a profile: another one',
    key({ profiles: new Set(['ca/web']) }),
    { ...sign, profiles: ['ca/db'] },
    /profile ca\/db/,
  ],
  [
    'a key of a profile: another one, to renew',
    key({ profiles: new Set(['ca/web']), scopes: new Set(['renewals:trigger']) }),
    { scopes: ['renewals:trigger'], profiles: ['ca/web', 'ca/db'] },
    /profile ca\/db/,
  ],
  [
    'a key of a profile: a role without one',
    key({ profiles: new Set(['ca/web']) }),
    { ...read, role: 'operator' },
    /profile \*/,
  ],
  [
    'an operator of a profile: any',
    { ...person('operator'), profiles: new Set(['ca/web']) },
    { scopes: ['renewals:trigger'] },
    /profile \*/,
  ],
  [
    'an operator of two profiles: one of them',
    { ...person('operator'), profiles: new Set(['ca/web', 'ca/db']) },
    { ...read, role: 'operator', profiles: ['ca/db'] },
    undefined,
  ],
  ['a key of a profile: none, to read', key({ profiles: new Set(['ca/web']) }), read, undefined],
  [
    'a key of a label: a certificate with it',
    key({ certificates: new Set(), certificateLabels: ['team=web'] }),
    { ...read, certificates: ['shop'] },
    undefined,
  ],
  [
    'a key of a label: a certificate without it',
    key({ certificates: new Set(), certificateLabels: ['team=web'] }),
    { ...read, certificates: ['other'] },
    /certificate other/,
  ],
  [
    'a key of a label: another label',
    key({ certificates: new Set(['shop']), certificateLabels: ['team=web'] }),
    { ...read, certificates: ['shop'], certificate_labels: ['team=db'] },
    /certificates with the label team=db/,
  ],
  [
    'an operator with a reach: certificates within it',
    { ...person('operator'), ...web },
    { ...read, certificates: ['shop'], certificate_labels: ['team=web'], labels: ['team=web'] },
    undefined,
  ],
  [
    'an operator with a reach: a key without a label of it',
    { ...person('operator'), ...web },
    { ...read, certificates: ['shop'] },
    /needs a label of your reach/,
  ],
  [
    'an operator with a reach: a certificate outside',
    { ...person('operator'), ...web },
    { ...read, certificates: ['other'], labels: ['team=web'] },
    /certificate other/,
  ],
  [
    'an operator with a reach: all certificates',
    { ...person('operator'), ...web },
    { ...read, labels: ['team=web'] },
    /certificate \*/,
  ],
  [
    'an operator with a reach: a key with a role and no reach',
    { ...person('operator'), ...web },
    { ...read, role: 'viewer', labels: ['team=web'] },
    /the reach is missing/,
  ],
  [
    'an operator with a reach: a key with a role and the same reach',
    { ...person('operator'), ...web },
    { ...read, role: 'viewer', labels: ['team=web'], ...web },
    undefined,
  ],
  [
    'an operator with a reach: a key with a wider reach',
    { ...person('operator'), ...web },
    { ...read, role: 'viewer', labels: ['team=web'], reach: ['team=db', 'team=web'] },
    /the reach team=db is outside yours/,
  ],
  ['a key that ends: one that does not', key({ expiresAt: end }), read, /expiry after 2030/],
  [
    'a key that ends: one that ends with it',
    key({ expiresAt: end }),
    { ...read, expires_at: '2030-01-01T00:00:00Z' },
    undefined,
  ],
  [
    'a key that ends: one that ends later',
    key({ expiresAt: end }),
    { ...read, expires_at: '2030-01-01T00:00:01Z' },
    /expiry after 2030/,
  ],
];

for (const [title, who, rights, refusal] of cases) {
  test(`requireGrantable ${refusal === undefined ? 'allows' : 'refuses'} for ${title}`, async () => {
    const input = parseInput(createApiKeyInput, { name: 'new', certificates: ['*'], ...rights });
    const grant = () => requireGrantable(labels, who, input);
    if (refusal === undefined) await grant();
    else {
      await assert.rejects(grant, (error) => {
        assert(error instanceof Problem);
        assert.equal(error.code, 'forbidden');
        assert.match(error.message, refusal);
        return true;
      });
    }
  });
}

test('requireGrantable lets no role but admin give private keys', async () => {
  const input = parseInput(createApiKeyInput, {
    name: 'new',
    certificates: ['*'],
    scopes: ['private_keys:read'],
  });
  const granted = await Promise.allSettled(
    roles.map((role) => requireGrantable(labels, person(role), input)),
  );
  const may = roles.filter((_, index) => granted[index]?.status === 'fulfilled');
  assert.deepEqual(may, ['admin']);
});
