/** Sign-in by OpenID Connect: who gets in, as whom, and what is recorded. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventsOf, makeCertificate } from '../../../harness/http/fixtures.ts';
import { makeAdministrator, pageWith, signIn } from '../../../harness/http/sign-in-fixtures.ts';
import { testServer } from '../../../harness/http/test-server.ts';
import { beginSignIn, followBack, oidcServer, signInByOidc } from '../../../harness/oidc/oidc-visitor.ts';

const home = 'https://vault.example.test/signed-in';
const refused = (code: string) => `https://vault.example.test/sign-in?refused=${code}`;

test('a person with a mapped group signs in, and the account is created, recorded and kept', async (t) => {
  const server = await oidcServer(t);
  const first = await signInByOidc(server);
  assert.equal(first.location, home);
  assert(first.session);
  const session = await pageWith(server, first.session).send('GET', '/api/v1/session');
  const { name, role, sign_in } = (await session.json()) as Record<string, string>;
  assert.deepEqual({ name, role, sign_in }, { name: 'alice', role: 'admin', sign_in: 'oidc' });
  // The person is the same, although the provider calls them something else now.
  server.provider.claims = { preferred_username: 'alice.married' };
  assert.equal((await signInByOidc(server)).location, home);
  const created = eventsOf(server.dataDir, 'administrator.create');
  assert.deepEqual(
    created.map(({ actor, resource, detail }) => ({ actor, resource, detail })),
    [
      {
        actor: 'admin:alice',
        resource: 'administrator:alice',
        detail: { role: 'admin', oidc_issuer: server.provider.issuer, oidc_subject: 'subject-1' },
      },
    ],
  );
  assert.equal(eventsOf(server.dataDir, 'session.create').length, 2);
});

test('the highest mapped role counts, and each sign-in sets the role from the claims', async (t) => {
  const server = await oidcServer(t);
  server.provider.claims = { groups: ['vault-viewers', 'vault-operators', 'others'] };
  const { session } = await signInByOidc(server);
  assert(session);
  const roleOf = async () =>
    ((await (await pageWith(server, session).send('GET', '/api/v1/session')).json()) as { role: string })
      .role;
  assert.equal(await roleOf(), 'operator');
  server.provider.claims = { groups: 'vault-viewers' };
  await signInByOidc(server);
  assert.equal(await roleOf(), 'viewer');
  const [changed] = eventsOf(server.dataDir, 'administrator.update');
  assert.deepEqual([changed?.actor, changed?.detail.before], ['system', { role: 'operator' }]);
});

test('groups confine to labels, which each sign-in reads again, and who has none of them is refused', async (t) => {
  const reach = [
    { value: 'web', label: 'team=web' },
    { value: 'db', label: 'team=db' },
  ];
  const server = await oidcServer(t, { reach });
  await makeCertificate(server.vault, 'plain');
  const signedIn = async (groups: readonly string[]) => {
    server.provider.claims = { groups };
    return signInByOidc(server);
  };
  const { session } = await signedIn(['vault-viewers', 'web']);
  assert(session);
  const settings = '/api/v1/certificates/plain/settings';
  assert.equal((await pageWith(server, session).send('GET', settings)).status, 403);
  const again = await signedIn(['vault-viewers', 'db']);
  assert(again.session);
  const [created] = eventsOf(server.dataDir, 'administrator.create');
  assert.deepEqual(created?.detail.reach, ['team=web']);
  const [changed] = eventsOf(server.dataDir, 'administrator.update');
  assert.deepEqual(changed?.detail.reach, ['team=db']);
  assert.deepEqual(changed?.detail.before, { role: 'viewer', reach: ['team=web'] });
  assert.equal((await signedIn(['vault-viewers'])).location, refused('not_permitted'));
  assert.equal((await pageWith(server, again.session).send('GET', '/api/v1/session')).status, 401);
  const admin = await signedIn(['vault-admins']);
  assert(admin.session);
  assert.equal((await pageWith(server, admin.session).send('GET', settings)).status, 200);
});

test('groups confine operators to profiles, which each sign-in reads again, and an operator with none is refused', async (t) => {
  const profiles = [
    { value: 'web', profile: 'local-ca/web' },
    { value: 'db', profile: 'local-ca/db' },
    { value: 'sre', profile: undefined },
  ];
  const server = await oidcServer(t, { profiles });
  await makeAdministrator(server.vault, 'root');
  const local = await signIn(server, 'root');
  for (const name of ['web', 'db']) {
    const added = await local.send('POST', '/api/v1/issuers/local-ca/profiles', { name });
    assert.equal(added.status, 201);
  }
  const signedIn = async (...groups: readonly string[]) => {
    server.provider.claims = { groups };
    return signInByOidc(server);
  };
  let count = 0;
  const creates = async (session: string | undefined, profile?: string) => {
    count += 1;
    const body = { name: `c${count}`, domains: ['www.example.test'], ...(profile && { profile }) };
    return (await pageWith(server, session ?? '').send('POST', '/api/v1/certificates', body)).status;
  };
  const web = await signedIn('vault-operators', 'web');
  assert.equal(web.location, home);
  const shown = await pageWith(server, web.session ?? '').send('GET', '/api/v1/session');
  assert.deepEqual(((await shown.json()) as { profiles: string[] }).profiles, ['local-ca/web']);
  assert.deepEqual(
    [await creates(web.session, 'web'), await creates(web.session, 'db'), await creates(web.session)],
    [201, 403, 403],
  );
  const db = await signedIn('vault-operators', 'db');
  // Sessions from before have the new rights.
  assert.deepEqual([await creates(web.session, 'web'), await creates(db.session, 'db')], [403, 201]);
  const [, created] = eventsOf(server.dataDir, 'administrator.create');
  assert.deepEqual(created?.detail.profiles, ['local-ca/web']);
  const [changed] = eventsOf(server.dataDir, 'administrator.update');
  assert.deepEqual([changed?.actor, changed?.detail.profiles], ['system', ['local-ca/db']]);
  assert.deepEqual(changed?.detail.before, { role: 'operator', profiles: ['local-ca/web'] });
  await signedIn('vault-operators', 'db');
  assert.equal(eventsOf(server.dataDir, 'administrator.update').length, 1);
  // People of the provider do not keep a profile, as a local administrator does.
  assert.equal((await local.send('DELETE', '/api/v1/certificates/c5')).status, 204);
  assert.equal((await local.send('DELETE', '/api/v1/issuers/local-ca/profiles/db')).status, 204);
  assert.equal((await signedIn('vault-operators')).location, refused('not_permitted'));
  const [refusal] = eventsOf(server.dataDir, 'session.refuse');
  assert.deepEqual(
    [refusal?.detail.reason, refusal?.detail.values],
    ['no profiles for this person', '["vault-operators"]'],
  );
  assert.equal((await pageWith(server, db.session ?? '').send('GET', '/api/v1/session')).status, 401);
  for (const groups of [['vault-admins'], ['vault-operators', 'db', 'sre']]) {
    const { session } = await signedIn(...groups);
    assert.equal(await creates(session), 201, String(groups));
  }
  const { session } = await signedIn('vault-viewers');
  assert(session, 'a viewer needs no profiles');
});

test('a person without a mapped group is refused, recorded with the values, and loses open sessions', async (t) => {
  const server = await oidcServer(t);
  const { session } = await signInByOidc(server);
  assert(session);
  server.provider.claims = { groups: ['staff'] };
  assert.deepEqual(await signInByOidc(server), { location: refused('not_permitted'), session: undefined });
  const { status } = await pageWith(server, session).send('GET', '/api/v1/session');
  assert.equal(status, 401);
  const [event] = eventsOf(server.dataDir, 'session.refuse');
  assert.deepEqual(event?.detail, {
    reason: 'no role for this person',
    oidc_subject: 'subject-1',
    claim: 'groups',
    values: '["staff"]',
  });
  assert.equal(eventsOf(server.dataDir, 'session.end')[0]?.detail.how, 'role lost at the provider');
});

test('a default role admits everyone else at the provider', async (t) => {
  const provider = { claim: 'groups', values: { viewer: [], operator: [], admin: ['x'] } };
  const server = await oidcServer(t, { roles: { ...provider, byDefault: 'viewer' } });
  const { session } = await signInByOidc(server);
  assert(session);
  const { status } = await pageWith(server, session).send('POST', '/api/v1/certificates', { name: 'web' });
  assert.equal(status, 403);
});

test('claims that the ID token lacks come from the userinfo endpoint', async (t) => {
  const server = await oidcServer(t);
  server.provider.claims = { preferred_username: undefined, groups: undefined };
  server.provider.userinfo = { preferred_username: 'bob', groups: ['vault-operators'] };
  const { session } = await signInByOidc(server);
  assert(session);
  const person = (await (await pageWith(server, session).send('GET', '/api/v1/session')).json()) as {
    name: string;
  };
  assert.equal(person.name, 'bob');
  server.provider.userinfo = { ...server.provider.userinfo, sub: 'someone-else' };
  assert.equal((await signInByOidc(server)).location, refused('invalid'));
});

test('a person whose name a local administrator has is refused, and that administrator stays local', async (t) => {
  const server = await oidcServer(t);
  await makeAdministrator(server.vault, 'Alice');
  assert.equal((await signInByOidc(server)).location, refused('name_taken'));
  assert.equal(eventsOf(server.dataDir, 'session.refuse')[0]?.detail.name, 'Alice');
  const page = await signIn(server, 'alice');
  const list = (await (await page.send('GET', '/api/v1/administrators')).json()) as { sign_in: string }[];
  assert.deepEqual(
    list.map(({ sign_in }) => sign_in),
    ['password'],
  );
});

test('an account of the provider has no password, and its role cannot be changed here', async (t) => {
  const server = await oidcServer(t);
  await makeAdministrator(server.vault, 'root');
  const { session } = await signInByOidc(server);
  assert(session);
  const page = pageWith(server, session);
  const change = { current: 'correct horse battery staple', new: 'several words in a row' };
  for (const response of [
    await page.send('PUT', '/api/v1/session/password', change),
    await page.send('PATCH', '/api/v1/administrators/alice', { role: 'viewer' }),
  ]) {
    assert.deepEqual(
      [response.status, ((await response.json()) as { code: string }).code],
      [409, 'oidc_administrator'],
    );
  }
  for (const password of ['correct horse battery staple', ' ']) {
    const { status } = await page.send('POST', '/api/v1/session', { name: 'alice', password });
    assert.equal(status, 401);
  }
  // The only local administrator is the way in without the provider.
  assert.equal((await page.send('DELETE', '/api/v1/administrators/root')).status, 409);
});

test('a person of the provider does not end the setup of the first local administrator', async (t) => {
  const server = await oidcServer(t);
  const { needsSetup } = await import('../../../../src/domain/access/setup.ts');
  await signInByOidc(server);
  assert.equal(await needsSetup(server.vault), true);
});

test('a provider that is down stops neither the start nor passwords, and is asked again once it answers', async (t) => {
  const server = await oidcServer(t);
  await makeAdministrator(server.vault, 'root');
  assert.deepEqual(server.provider.requests, []);
  server.provider.isDown = true;
  const begin = () =>
    server.get('/api/v1/session/oidc', undefined, {
      method: 'POST',
      headers: { 'Sec-Fetch-Site': 'same-origin' },
    });
  assert.equal((await begin()).status, 503);
  assert.equal((await begin()).status, 503);
  assert.equal(server.provider.requests.length, 1);
  await signIn(server, 'root');
  server.provider.isDown = false;
  server.world.advance(5_000);
  assert.equal((await begin()).status, 201);
});

test('a provider that goes down during a sign-in sends the person back to the sign-in page', async (t) => {
  const server = await oidcServer(t);
  const { url, cookie } = await beginSignIn(server);
  const back = server.provider.authorize(url);
  server.provider.stop();
  assert.equal((await followBack(server, back, cookie)).location, refused('provider_unreachable'));
});

test('a person who declines at the provider gets back to the sign-in page', async (t) => {
  const server = await oidcServer(t);
  const { url, cookie } = await beginSignIn(server);
  const back = server.provider.authorize(url);
  back.searchParams.delete('code');
  back.searchParams.set('error', 'access_denied');
  assert.equal((await followBack(server, back, cookie)).location, refused('declined'));
});

test('without a provider in the settings there is no sign-in by OpenID Connect', async (t) => {
  const { get } = await testServer(t);
  assert.deepEqual(await (await get('/api/v1/sign-in-methods')).json(), {
    ...{ oidc: null, passkeys: null, setup_needed: true },
  });
  assert.equal((await get('/oidc/callback?code=1&state=2')).status, 404);
  const headers = { 'Sec-Fetch-Site': 'same-origin' };
  assert.equal((await get('/api/v1/session/oidc', undefined, { method: 'POST', headers })).status, 404);
});
