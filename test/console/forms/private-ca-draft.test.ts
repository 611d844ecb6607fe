/** The request bodies of the form for a private CA: lists by line, empty fields left out, and changes alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Issuer } from '../../../assets/console/data/administration-shapes.ts';
import {
  blankPrivateCa,
  newPrivateCa,
  privateCaChanges,
  privateCaDraft,
} from '../../../assets/console/forms/private-ca-draft.ts';

const issuer: Issuer = {
  ...{ name: 'staging-ca', type: 'local-ca', directory_url: null, email: null, eab_kid: null },
  ...{ profile: null, preferred_chain: null, ca_pem: null, terms_of_service: null, account: null },
  ...{ paused_until: null, pause_reason: null, created_at: '2026-01-01T00:00:00Z' },
  private_ca: {
    common_name: 'Staging',
    permit_domains: ['staging.example', 'test.example'],
    permit_ips: ['10.0.0.0/8'],
    path_length: 1,
    lifetime: '30d',
    key_type: 'ec384',
  },
};
const before = privateCaDraft(issuer);

const cases: readonly [what: string, changes: Partial<typeof before>, sent: object][] = [
  ['nothing', {}, {}],
  ['blanks and empty lines', { domains: ' staging.example\n\n test.example ', lifetime: ' 30d ' }, {}],
  [
    'a domain less and a network more',
    { domains: 'test.example', networks: '10.0.0.0/8\n2001:db8::/32' },
    { permit_domains: ['test.example'], permit_ips: ['10.0.0.0/8', '2001:db8::/32'] },
  ],
  ['emptied lists', { domains: '', networks: ' \n' }, { permit_domains: [], permit_ips: [] }],
  ['an emptied lifetime', { lifetime: '' }, { lifetime: null }],
  ['another type of key', { keyType: 'rsa4096' }, { key_type: 'rsa4096' }],
  [
    'a domain by force',
    { domains: 'b.example', isForced: true },
    { permit_domains: ['b.example'], force: true },
  ],
];

for (const [what, changes, sent] of cases)
  test(`a change of ${what} sends ${JSON.stringify(sent)}`, () =>
    assert.deepEqual(privateCaChanges(before, { ...before, ...changes }), sent));

test('a new private CA is sent with its non-empty fields only', () => {
  assert.deepEqual(newPrivateCa({ ...blankPrivateCa, name: ' a ' }), { type: 'local-ca', name: 'a' });
  const draft = {
    ...{
      name: 'a',
      commonName: ' A Root ',
      domains: 'a.example, b.example\nc.example',
      networks: '10.0.0.0/8',
    },
    ...{ lifetime: '30d', keyType: 'ed25519', pathLength: '2', isForced: false },
  };
  assert.deepEqual(newPrivateCa(draft), {
    ...{ type: 'local-ca', name: 'a', common_name: 'A Root', lifetime: '30d', key_type: 'ed25519' },
    ...{
      permit_domains: ['a.example', 'b.example', 'c.example'],
      permit_ips: ['10.0.0.0/8'],
      path_length: 2,
    },
  });
});
