/** The request bodies of the form for an ACME CA: only changed fields, and null for emptied ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Issuer } from '../../../assets/console/data/administration-shapes.ts';
import {
  blankIssuer,
  issuerChanges,
  issuerDraft,
  newIssuer,
} from '../../../assets/console/forms/issuer-draft.ts';

const issuer: Issuer = {
  ...{ name: 'ca', type: 'acme', directory_url: 'https://ca.example/directory', email: 'ops@example.com' },
  ...{ eab_kid: 'kid-1', profile: 'classic', preferred_chain: 'Old Root', ca_pem: '-----BEGIN …\n' },
  ...{ terms_of_service: null, account: '1', paused_until: null, pause_reason: null },
  private_ca: null,
  created_at: '2026-01-01T00:00:00Z',
};
const before = issuerDraft(issuer);

const cases: readonly [what: string, changes: Partial<typeof before>, sent: object][] = [
  ['nothing', {}, {}],
  ['blanks', { email: ' ops@example.com ', ca_pem: '-----BEGIN …' }, {}],
  ['another contact', { email: 'sec@example.com' }, { email: 'sec@example.com' }],
  ['an emptied contact', { email: '' }, { email: null }],
  [
    'an emptied profile and chain',
    { profile: ' ', preferred_chain: '' },
    { profile: null, preferred_chain: null },
  ],
  ['an emptied trust root', { ca_pem: '' }, { ca_pem: null }],
  ['an emptied directory, which is required', { directory_url: '' }, {}],
  ['an emptied key ID, which cannot be removed', { eab_kid: '' }, {}],
  ['an HMAC key', { eab_hmac_key: 'abc' }, { eab_hmac_key: 'abc' }],
];

for (const [what, changes, sent] of cases)
  test(`a change of ${what} sends ${JSON.stringify(sent)}`, () =>
    assert.deepEqual(issuerChanges(before, { ...before, ...changes }), sent));

test('a new CA is sent with its non-empty fields only', () => {
  const draft = { ...blankIssuer, name: 'letsencrypt', directory_url: ' https://ca.example/d ', email: ' ' };
  assert.deepEqual(newIssuer(draft), { name: 'letsencrypt', directory_url: 'https://ca.example/d' });
});
