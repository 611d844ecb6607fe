/** Confinement to profiles of private CAs over HTTP: what people and API keys may have issued, by role and by scope. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { importCertificate } from '../../../src/domain/certificates/certificate-import.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { certName } from '../../../src/domain/input-strings.ts';
import { opensslRequest } from '../../harness/ca/openssl-requests.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import {
  eventsOf,
  makeBundle,
  makeCertificate,
  makeKey,
  renewCertificate,
} from '../../harness/http/fixtures.ts';
import {
  fromPage,
  goodPassword,
  makeAdministrator,
  otherPassword,
  signIn,
} from '../../harness/http/sign-in-fixtures.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const certificates = '/api/v1/certificates';
const people = '/api/v1/administrators';
const keys = '/api/v1/api-keys';
const profiles = '/api/v1/issuers/local-ca/profiles';

type Problem = { code: string; detail: string; errors?: { path: string; message: string }[] };
type Send = (method: string, path: string, body?: unknown) => Promise<Response>;

/** A vault whose private CA has the profiles web and people. */
async function withProfiles(t: TestContext) {
  const server = await checkedServer(t);
  await makeAdministrator(server.vault, 'ada');
  const ada = await signIn(server, 'ada');
  const expect = async <T>(status: number, send: Send, ...[method, path, body]: Parameters<Send>) => {
    const response = await send(method, path, body);
    const text = await response.text();
    assert.equal(response.status, status, `${method} ${path}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
  for (const name of ['web', 'people']) await expect(201, ada.send, 'POST', profiles, { name });
  const bearer =
    (raw: string): Send =>
    (method, path, body) =>
      server.get(path, undefined, fromPage(method, body, undefined, { headers: keyHeaders(raw) }));
  return { server, ada: ada.send, expect, bearer };
}

const keyHeaders = (raw: string) => ({ Authorization: `Bearer ${raw}` });

type Site = Awaited<ReturnType<typeof withProfiles>>;

/** Who sends requests. `may` is about what lies outside of the profile web of local-ca. */
type Caller = { readonly who: string; readonly send: Send; readonly may: boolean };

/** Two who are confined to the profile web, and two who are not. */
async function callersOf({ server, ada, bearer }: Site): Promise<Caller[]> {
  const web = ['local-ca/web'];
  await makeAdministrator(server.vault, 'olga', otherPassword, 'operator', web);
  await makeAdministrator(server.vault, 'oscar', otherPassword, 'operator');
  const rights = {
    role: 'operator',
    scopes: ['certificates:read', 'renewals:trigger', 'certificates:sign'],
  } as const;
  const confined = await makeKey(server.vault, { ...rights, name: 'confined', profiles: web });
  return [
    { who: 'administrator:olga', send: (await signIn(server, 'olga', otherPassword)).send, may: false },
    { who: `api-key:${confined.id}`, send: bearer(confined.raw), may: false },
    { who: 'administrator:oscar', send: (await signIn(server, 'oscar', otherPassword)).send, may: true },
    { who: 'administrator:ada', send: ada, may: true },
  ];
}

/** What a certificate is before the request: it has a profile, none, was imported, or does not exist. */
type Before = 'web' | 'people' | 'no profile' | 'imported' | 'missing';

async function make({ server: { vault } }: Site, name: string, before: Before): Promise<void> {
  if (before === 'missing') return;
  if (before === 'imported') {
    const sources = [{ name: 'bundle.pem', bytes: Buffer.from(await makeBundle(vault)) }];
    await importCertificate(vault, localCli, { name: certName.parse(name), sources });
    return;
  }
  const profile = before === 'no profile' ? undefined : before;
  await makeCertificate(vault, name, undefined, profile === undefined ? {} : { profile });
}

type Request = readonly [method: string, path: string, body?: unknown];

/** What is asked of the certificate `name`, and the status for those who may. */
type Row = readonly [
  operation: string,
  before: Before,
  confined: 'allowed' | 'refused',
  status: number,
  request: (name: string, site: Site) => Request | Promise<Request>,
];

const patch =
  (body: object): Row[4] =>
  (name) => ['PATCH', `${certificates}/${name}`, body];
const put =
  (body: object): Row[4] =>
  (name) => ['PUT', `${certificates}/${name}`, { domains: [`${name}.example.test`], ...body }];
const create =
  (body: object): Row[4] =>
  (name) => ['POST', certificates, { name, domains: [`${name}.example.test`], ...body }];
const post =
  (action: string, body?: object): Row[4] =>
  (name) => ['POST', `${certificates}/${name}/${action}`, body];
const sign: Row[4] = (name) => {
  const { csr } = opensslRequest({ names: `DNS:${name}.example.test` });
  return ['POST', `${certificates}/${name}/sign`, { csr }];
};
const createKey =
  (body: object): Row[4] =>
  (name) => ['POST', keys, { name, certificates: ['*'], ...body }];

/** The certificate is deleted first. */
const restore: Row[4] = async (name, { server: { vault }, expect, ada }) => {
  await deleteCertificate(vault, localCli, name, { force: false });
  const deleted = await expect<{ id: number; name: string }[]>(
    200,
    ada,
    'GET',
    '/api/v1/deleted-certificates',
  );
  const id = deleted.find((one) => one.name === name)?.id;
  return ['POST', `/api/v1/deleted-certificates/${id}/restore`, {}];
};

const importNew: Row[4] = async (name, { server: { vault } }) => [
  'POST',
  '/api/v1/imports',
  { name, files: [{ name: 'all.pem', text: await makeBundle(vault) }] },
];

const trigger = { scopes: ['renewals:trigger'] };
const read = { scopes: ['certificates:read'] };

const rows: readonly Row[] = [
  ['create with the profile', 'missing', 'allowed', 201, create({ profile: 'web' })],
  ['create with another profile', 'missing', 'refused', 201, create({ profile: 'people' })],
  ['create without a profile', 'missing', 'refused', 201, create({})],
  ['ensure with the profile', 'missing', 'allowed', 201, put({ profile: 'web' })],
  ['ensure without a profile', 'missing', 'refused', 201, put({})],
  ['ensure that it leaves the profile', 'web', 'refused', 200, put({})],
  ['ensure that it enters the profile', 'people', 'allowed', 200, put({ profile: 'web' })],
  ['ensure what it is already', 'people', 'allowed', 200, put({ profile: 'people' })],
  ['change within the profile', 'web', 'allowed', 200, patch({ domains: ['new.example.test'] })],
  ['change into the profile', 'people', 'allowed', 200, patch({ profile: 'web' })],
  ['change out of the profile', 'web', 'refused', 200, patch({ profile: 'people' })],
  ['change to no profile', 'web', 'refused', 200, patch({ profile: null })],
  ['change outside of the profile', 'people', 'refused', 200, patch({ domains: ['new.example.test'] })],
  ['rotate the key outside of the profile', 'people', 'refused', 200, patch({ rotate_key: true })],
  ['give an issuer to an imported one', 'imported', 'refused', 200, patch({ issuer: 'local-ca' })],
  ['renew within the profile', 'web', 'allowed', 202, post('renew')],
  ['renew outside of the profile', 'people', 'refused', 202, post('renew')],
  ['renew without a profile', 'no profile', 'refused', 202, post('renew')],
  ['sign within the profile', 'web', 'allowed', 202, sign],
  ['sign outside of the profile', 'people', 'refused', 202, sign],
  ['sign without a profile', 'no profile', 'refused', 202, sign],
  ['restore within the profile', 'web', 'allowed', 200, restore],
  ['restore outside of the profile', 'people', 'refused', 200, restore],
  ['restore an imported one', 'imported', 'allowed', 200, restore],
  ['revoke within the profile', 'web', 'allowed', 200, post('revoke', {})],
  ['revoke outside of the profile', 'people', 'refused', 200, post('revoke', {})],
  ['stop renewals outside of the profile', 'people', 'allowed', 200, patch({ auto_renew: false })],
  ['disable outside of the profile', 'people', 'allowed', 200, patch({ disabled: true })],
  ['start renewals outside of the profile', 'people', 'refused', 200, patch({ auto_renew: true })],
  ['enable outside of the profile', 'people', 'refused', 200, patch({ disabled: false })],
  [
    'delete outside of the profile',
    'people',
    'allowed',
    204,
    (name) => ['DELETE', `${certificates}/${name}`],
  ],
  ['import', 'missing', 'allowed', 201, importNew],
  [
    'create a key that renews within the profile',
    'missing',
    'allowed',
    201,
    createKey({ ...trigger, profiles: ['local-ca/web'] }),
  ],
  ['create a key that renews everything', 'missing', 'refused', 201, createKey(trigger)],
  [
    'create a key that renews more',
    'missing',
    'refused',
    201,
    createKey({ ...trigger, profiles: ['local-ca/web', 'local-ca/people'] }),
  ],
  [
    'create a key with the role operator',
    'missing',
    'refused',
    201,
    createKey({ ...read, role: 'operator' }),
  ],
  ['create a key that only reads', 'missing', 'allowed', 201, createKey({ ...read, role: 'viewer' })],
];

suite('a person or key that is confined to a profile', needs('openssl'), () => {
  for (const [operation, before, confined, allowed, request] of rows) {
    test(`${confined === 'allowed' ? 'may' : 'may not'} ${operation}${before === 'missing' ? '' : ` (${before})`}`, async (t) => {
      const site = await withProfiles(t);
      for (const [index, { who, send, may }] of (await callersOf(site)).entries()) {
        const name = `c${index}`;
        await make(site, name, before);
        const [method, path, body] = await request(name, site);
        const status = may || confined === 'allowed' ? allowed : 403;
        const reply = await site.expect<Problem>(status, send, method, path, body);
        const [event, ...more] = eventsOf(site.server.dataDir, 'access.refuse').slice(index);
        assert.deepEqual(more, []);
        if (status !== 403) {
          assert.equal(event, undefined, who);
          continue;
        }
        assert.equal(reply.code, 'forbidden');
        assert.equal(event?.resource, `${method} ${path}`);
        if (path === keys) continue;
        assert.match(
          reply.detail,
          /^(This API key|You) may have certificates issued only with one of these profiles: local-ca\/web\. The profiles of an? (key|administrator) are set with "vault (api-key|admin) update --profile"\.$/,
        );
        assert.equal(event?.detail.reason, 'profile');
      }
    });
  }

  test('revokes an older version, and the current one of what does not renew, outside of the profile', async (t) => {
    const site = await withProfiles(t);
    const { server, ada, expect } = site;
    const [olga = assert.fail()] = await callersOf(site);
    for (const name of ['stopped', 'disabled', 'renewed']) await make(site, name, 'people');
    await expect(200, ada, 'PATCH', `${certificates}/stopped`, { auto_renew: false });
    await expect(200, ada, 'PATCH', `${certificates}/disabled`, { disabled: true });
    await renewCertificate(server.vault, 'renewed');
    await expect(200, olga.send, 'POST', `${certificates}/stopped/revoke`, {});
    await expect(200, olga.send, 'POST', `${certificates}/disabled/revoke`, {});
    await expect(200, olga.send, 'POST', `${certificates}/renewed/revoke`, { version: 1 });
    await expect(403, olga.send, 'POST', `${certificates}/renewed/revoke`, { version: 2 });
    // Nothing was revoked by the refused request.
    await expect(200, ada, 'POST', `${certificates}/renewed/revoke`, { version: 2 });
  });

  test('is refused by a change of the profiles from the next request on', async (t) => {
    const { server, ada, expect } = await withProfiles(t);
    await makeAdministrator(server.vault, 'olga', otherPassword, 'operator');
    const { send } = await signIn(server, 'olga', otherPassword);
    const body = (name: string) => ({ name, domains: ['www.example.test'], profile: 'people' });
    await expect(201, send, 'POST', certificates, body('one'));
    const changed = await expect<{ profiles: string[] }>(200, ada, 'PATCH', `${people}/olga`, {
      profiles: ['local-ca/web', 'local-ca/web'],
    });
    assert.deepEqual(changed.profiles, ['local-ca/web']);
    await expect(403, send, 'POST', certificates, body('two'));
    for (const path of ['/api/v1/session', '/api/v1/whoami']) {
      const shown = await expect<{ profiles: string[] }>(200, send, 'GET', path);
      assert.deepEqual(shown.profiles, ['local-ca/web'], path);
    }
    // The same ones in another order change nothing, and are not recorded.
    const both = ['local-ca/people', 'local-ca/web'];
    await expect(200, ada, 'PATCH', `${people}/olga`, { profiles: both });
    await expect(200, ada, 'PATCH', `${people}/olga`, { profiles: both.toReversed() });
    await expect(201, send, 'POST', certificates, body('two'));
    await expect(200, ada, 'PATCH', `${people}/olga`, { profiles: [] });
    await expect(201, send, 'POST', certificates, { ...body('three'), profile: undefined });
    const details = eventsOf(server.dataDir, 'administrator.update').map(({ detail }) => detail);
    const role = 'operator';
    assert.deepEqual(details, [
      { role, profiles: ['local-ca/web'], before: { role, profiles: [] } },
      { role, profiles: both, before: { role, profiles: ['local-ca/web'] } },
      { role, profiles: [], before: { role, profiles: both } },
    ]);
  });
});

suite('an API key confined to a profile', needs('openssl'), () => {
  const cases = [
    ['renewals:trigger', 'renew', undefined],
    ['certificates:sign', 'sign', 'csr'],
  ] as const;
  for (const [scope, action, kind] of cases) {
    test(`with the scope ${scope} has only certificates with it issued`, async (t) => {
      const site = await withProfiles(t);
      const { server, expect, bearer } = site;
      for (const before of ['web', 'people', 'no profile'] as const)
        await make(site, before.slice(0, 2), before);
      const rights = { scopes: [scope], profiles: ['local-ca/web'] };
      const { raw } = await makeKey(server.vault, rights);
      const ask = (name: string, status: number) => {
        const { csr } = opensslRequest({ names: `DNS:${name}.example.test` });
        const body = kind === undefined ? undefined : { csr };
        return expect<Problem>(status, bearer(raw), 'POST', `${certificates}/${name}/${action}`, body);
      };
      await ask('we', 202);
      for (const name of ['pe', 'no']) assert.equal((await ask(name, 403)).code, 'forbidden');
      const events = eventsOf(server.dataDir, 'access.refuse');
      const detail = { code: 'forbidden', scope, reason: 'profile' };
      assert.deepEqual(
        events.map((event) => [event.resource, event.detail]),
        ['pe', 'no'].map((name) => [`POST ${certificates}/${name}/${action}`, detail]),
      );
    });
  }
});

suite('the profiles of a person', () => {
  const operator = { name: 'olga', password: goodPassword, role: 'operator' };
  const refusals: readonly (readonly [
    what: string,
    body: object,
    message: string,
    hint: RegExp | undefined,
  ])[] = [
    [
      'with the role admin',
      { role: 'admin', profiles: ['local-ca/web'] },
      'the role admin may use every profile; use the role operator',
      /"--profile none", or "profiles": \[\]/,
    ],
    [
      'with the role viewer',
      { role: 'viewer', profiles: ['local-ca/web'] },
      'the role viewer has no certificates issued; only the role operator has profiles',
      /"--profile none", or "profiles": \[\]/,
    ],
    [
      'that are unknown',
      { profiles: ['local-ca/wep'] },
      'no private CA has the profile "local-ca/wep"',
      undefined,
    ],
    ['of an unknown CA', { profiles: ['x/web'] }, 'no private CA has the profile "x/web"', undefined],
    [
      'without their CA',
      { profiles: ['web'] },
      'write a profile with its issuer, such as local-ca/web',
      undefined,
    ],
    [
      'that are more than 100',
      { profiles: Array.from({ length: 101 }, () => 'local-ca/web') },
      'an administrator has at most 100 profiles',
      undefined,
    ],
  ];
  for (const [what, body, message, hint] of refusals) {
    test(`${what} are refused, for a new person as for another`, async (t) => {
      const { server, ada, expect } = await withProfiles(t);
      const created = await expect<Problem>(400, ada, 'POST', people, { ...operator, ...body });
      await makeAdministrator(server.vault, 'olga', goodPassword, 'operator');
      const changed = await expect<Problem>(400, ada, 'PATCH', `${people}/olga`, body);
      for (const { code, detail, errors } of [created, changed]) {
        assert.equal(code, 'invalid_request');
        assert.deepEqual(errors?.[0]?.message, message);
        assert.match(errors?.[0]?.path ?? '', /^profiles/);
        if (hint !== undefined) assert.match(detail, hint);
      }
      assert.deepEqual(eventsOf(server.dataDir, 'administrator.update'), []);
    });
  }

  test('stay with the role operator, and have to go with another role', async (t) => {
    const { ada, expect, server } = await withProfiles(t);
    const made = await expect<{ profiles: string[] }>(201, ada, 'POST', people, {
      ...operator,
      profiles: ['local-ca/web'],
    });
    assert.deepEqual(made.profiles, ['local-ca/web']);
    const [, event] = eventsOf(server.dataDir, 'administrator.create');
    assert.deepEqual(event?.detail, { role: 'operator', profiles: ['local-ca/web'] });
    for (const role of ['viewer', 'admin']) {
      await expect(400, ada, 'PATCH', `${people}/olga`, { role });
    }
    const reached = await expect<{ profiles: string[] }>(200, ada, 'PATCH', `${people}/olga`, {
      reach: ['team=web'],
    });
    assert.deepEqual(reached.profiles, ['local-ca/web']);
    await expect(200, ada, 'PATCH', `${people}/olga`, { role: 'viewer', profiles: [] });
  });

  test('stay, as their CA does, until no one is confined to them', async (t) => {
    const { server, ada, expect } = await withProfiles(t);
    await expect(201, ada, 'POST', '/api/v1/issuers', { type: 'local-ca', name: 'other-ca' });
    await expect(201, ada, 'POST', '/api/v1/issuers/other-ca/profiles', { name: 'web' });
    const names = ['olga', 'oona', 'oscar', 'otto', 'owen', 'ozzy'];
    for (const name of names) {
      await makeAdministrator(server.vault, name, goodPassword, 'operator', ['local-ca/web', 'other-ca/web']);
    }
    const inUse = await expect<Problem>(409, ada, 'DELETE', `${profiles}/web`);
    assert.equal(inUse.code, 'profile_in_use');
    assert.equal(
      inUse.detail,
      'Administrators are confined to the profile web of issuer local-ca: olga, oona, oscar, otto, owen …. Change their profiles with "vault admin update --profile".',
    );
    const issuer = await expect<Problem>(400, ada, 'DELETE', '/api/v1/issuers/other-ca');
    assert.match(issuer.detail, /administrators are confined to profiles of the issuer other-ca: olga, /);
    for (const name of names.slice(1)) await expect(204, ada, 'DELETE', `${people}/${name}`);
    await expect(204, ada, 'DELETE', `${profiles}/people`);
    await expect(409, ada, 'DELETE', `${profiles}/web`);
    await expect(200, ada, 'PATCH', `${people}/olga`, { profiles: [] });
    await expect(204, ada, 'DELETE', `${profiles}/web`);
    await expect(204, ada, 'DELETE', '/api/v1/issuers/other-ca');
  });
});
