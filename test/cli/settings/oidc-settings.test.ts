/** The settings of sign-in by OpenID Connect: what is missing or wrong is refused by name. */
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { OperatorError } from '../../../src/base/operator-error.ts';
import {
  type oidcOptions,
  oidcSettings,
  readProviderSettings,
} from '../../../src/cli/settings/oidc-settings.ts';
import { tempDir } from '../../harness/temp-dir.ts';

type Given = { readonly [K in keyof typeof oidcOptions]?: string | undefined };

const complete: Given = {
  'oidc-issuer': 'https://login.example.com',
  'oidc-client-id': 'vault',
  'oidc-client-secret-file': '/etc/vault/oidc-secret',
  'oidc-admins': 'ops',
};

const read = (given: Given, publicUrl: string | undefined = 'https://vault.example.com') =>
  oidcSettings((name) => {
    const value = given[name];
    return value === undefined ? undefined : { value, from: `--${name}` };
  }, publicUrl);

/** What differs from a complete setting, what the error says, and its hint. */
const refusals: readonly (readonly [
  what: string,
  given: Given,
  message: string | RegExp,
  hint: RegExp | undefined,
])[] = [
  ['no provider', { 'oidc-issuer': undefined }, '--oidc-client-id is set, but no provider', /oidc_issuer/],
  [
    'no client id',
    { 'oidc-client-id': undefined },
    '--oidc-issuer is set, but --oidc-client-id (in vault.yaml: oidc_client_id) is missing',
    undefined,
  ],
  [
    'no secret',
    { 'oidc-client-secret-file': undefined },
    '--oidc-issuer is set, but --oidc-client-secret-file (in vault.yaml: oidc_client_secret_file) is missing',
    undefined,
  ],
  [
    'http to another host',
    { 'oidc-issuer': 'http://login.example.com' },
    '--oidc-issuer: "http://login.example.com" is not the https URL of a provider',
    /^Use the issuer as the provider names it/,
  ],
  [
    'a query',
    { 'oidc-issuer': 'https://login.example.com/?a' },
    '--oidc-issuer: "https://login.example.com/?a" is not the https URL of a provider',
    /^Use the issuer/,
  ],
  [
    'scopes without openid',
    { 'oidc-scope': 'profile email' },
    '--oidc-scope: "profile email" is not a list of scopes with openid',
    /spaces/,
  ],
  [
    'no one with a role',
    { 'oidc-admins': ' , ' },
    '--oidc-issuer is set, but no one at the provider has a role',
    /oidc_admins/,
  ],
  [
    'an unknown role',
    { 'oidc-default-role': 'root' },
    '--oidc-default-role: "root" is not a role',
    /^Use none, viewer/,
  ],
  [
    'a list that is not one',
    { 'oidc-admins': '["ops"' },
    '--oidc-admins: "["ops"" is not a list of values',
    /JSON list/,
  ],
  [
    'a reach without a label',
    { 'oidc-reach': 'web-team' },
    '--oidc-reach: "web-team" is not a value and a label',
    /web-team:team=web/,
  ],
  [
    'a reach with a wrong label',
    { 'oidc-reach': 'web:Team=web' },
    /^--oidc-reach: "web:Team=web" is not a value and a label: /,
    /web-team:team=web/,
  ],
  ...['web-team', 'web:', ':local-ca/web', 'web:local-ca', 'web:local-ca/', 'web:local-ca/a/b', 'web:**'].map(
    (entry) =>
      [
        `the profiles ${entry}`,
        { 'oidc-profiles': `sre:*, ${entry}` },
        `--oidc-profiles: "${entry}" is not a value and a profile`,
        /web-team:local-ca\/web, or \* for any/,
      ] as const,
  ),
  [
    'profiles in a list that is not one',
    { 'oidc-profiles': '["web:local-ca/web"' },
    '--oidc-profiles: "["web:local-ca/web"" is not a list of values',
    /JSON list/,
  ],
  [
    'profiles without a provider',
    { 'oidc-issuer': undefined, 'oidc-client-id': undefined, 'oidc-profiles': 'web:local-ca/web' },
    /^--oidc-\S+ is set, but no provider$/,
    /oidc_issuer/,
  ],
  [
    'a list of numbers',
    { 'oidc-viewers': '[1]' },
    '--oidc-viewers: "[1]" is not a list of values',
    /JSON list/,
  ],
];

suite('oidc settings are refused', () => {
  for (const [what, given, message, hint] of refusals) {
    test(what, () => {
      assert.throws(
        () => read({ ...complete, ...given }),
        (error: unknown) => {
          assert(error instanceof OperatorError, String(error));
          if (typeof message === 'string') assert.equal(error.message, message);
          else assert.match(error.message, message);
          if (hint === undefined) assert.equal(error.hint, undefined);
          else assert.match(error.hint ?? '', hint);
          return true;
        },
      );
    });
  }

  test('without a public URL, to which the provider sends people back', () => {
    assert.throws(() => oidcSettings((name) => found(name), undefined), {
      message: '--oidc-issuer is set, but --public-url (in vault.yaml: public_url) is missing',
      hint: 'The provider sends browsers back to /oidc/callback at this URL.',
    });
  });
});

test('values are separated by commas, or listed where they have commas', () => {
  const lists = { 'oidc-admins': '["CN=Admins,OU=Groups", "ops"]', 'oidc-viewers': 'staff, guests' };
  assert.deepEqual(read({ ...complete, ...lists, 'oidc-role-claim': 'roles' })?.roles, {
    claim: 'roles',
    values: { viewer: ['staff', 'guests'], operator: [], admin: ['CN=Admins,OU=Groups', 'ops'] },
    byDefault: undefined,
  });
  assert.equal(read({ ...complete, 'oidc-default-role': 'viewer' })?.roles.byDefault, 'viewer');
  assert.equal(read({}), undefined);
  assert.deepEqual(read({ ...complete, 'oidc-reach': 'web:team=web, urn:x:db:team=d:b,sre:*' })?.reach, [
    { value: 'web', label: 'team=web' },
    { value: 'urn:x:db', label: 'team=d:b' },
    { value: 'sre', label: undefined },
  ]);
  const profiles = (value: string) => read({ ...complete, 'oidc-profiles': value })?.profiles;
  assert.deepEqual(profiles('web:local-ca/web, urn:x:db:staging-ca/db.v2,sre:*'), [
    { value: 'web', profile: 'local-ca/web' },
    { value: 'urn:x:db', profile: 'staging-ca/db.v2' },
    { value: 'sre', profile: undefined },
  ]);
  assert.deepEqual(profiles('["CN=Web,OU=Groups:local-ca/web"]'), [
    { value: 'CN=Web,OU=Groups', profile: 'local-ca/web' },
  ]);
  assert.deepEqual(read(complete)?.profiles, []);
});

test('the files of secret and CA are refused by name unless they hold one that others cannot read', (t) => {
  const dir = tempDir(t);
  const file = (name: string, content: string) => {
    const path = join(dir, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  };
  const settings = (secret: string, ca?: string) =>
    read({
      ...complete,
      'oidc-client-secret-file': secret,
      ...(ca !== undefined && { 'oidc-ca-file': ca }),
    }) ?? assert.fail();
  const secret = file('secret', 's3cret \n');
  assert.equal(readProviderSettings(settings(secret)).clientSecret.expose(), 's3cret');
  for (const [name, content] of [
    ['empty', '\n'],
    ['two lines', 'a\nb'],
    ['too long', 'x'.repeat(1001)],
  ] as const) {
    const path = file(name, content);
    assert.throws(() => readProviderSettings(settings(path)), {
      message: `--oidc-client-secret-file: ${path} holds no valid secret`,
    });
  }
  const empty = file('ca.pem', 'no certificate');
  assert.throws(() => readProviderSettings(settings(secret, empty)), {
    message: `--oidc-ca-file: ${empty} has no PEM certificate`,
  });
  chmodSync(secret, 0o644);
  assert.throws(
    () => readProviderSettings(settings(secret)),
    (error: unknown) => {
      assert(error instanceof OperatorError);
      assert(error.message.includes(secret), error.message);
      return true;
    },
  );
});

function found(
  name: keyof typeof oidcOptions,
): { readonly value: string; readonly from: string } | undefined {
  const value = complete[name];
  return value === undefined ? undefined : { value, from: `--${name}` };
}
