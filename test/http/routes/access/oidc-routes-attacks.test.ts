/** Attacks on the sign-in by OpenID Connect, by their names. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SignJWT, UnsecuredJWT } from 'jose';
import { eventsOf } from '../../../harness/http/fixtures.ts';
import { fromPage, makeAdministrator } from '../../../harness/http/sign-in-fixtures.ts';
import { testServer } from '../../../harness/http/test-server.ts';
import { beginSignIn, followBack, oidcServer, signInByOidc } from '../../../harness/oidc/oidc-visitor.ts';
import { clientSecret, scriptedProvider, settingsOf } from '../../../harness/oidc/scripted-provider.ts';

const refusal = (code: string) => ({
  location: `https://vault.example.test/sign-in?refused=${code}`,
  session: undefined,
});

const now = () => Math.floor(Date.now() / 1000);

test('enumeration: the name of a person of the provider is refused like an unknown one', async (t) => {
  const server = await oidcServer(t);
  await signInByOidc(server);
  const answers = await Promise.all(
    ['alice', 'unknown'].map(async (name) => {
      const body = { name, password: 'correct horse battery staple' };
      const response = await server.get('/api/v1/session', undefined, fromPage('POST', body));
      return [response.status, await response.json()];
    }),
  );
  assert.deepEqual(answers[0], answers[1]);
});

test('fixation: a session that the browser brings is not the one that it gets', async (t) => {
  const server = await oidcServer(t);
  const { session: known } = await signInByOidc(server);
  const { url, cookie } = await beginSignIn(server);
  const { session } = await followBack(server, server.provider.authorize(url), `${cookie}; ${known}`);
  assert(session);
  assert.notEqual(session, known);
});

test('replay: a response of the provider works once, even if the provider takes its code again', async (t) => {
  const server = await oidcServer(t);
  const { url, cookie } = await beginSignIn(server);
  const back = server.provider.authorize(url);
  assert((await followBack(server, back, cookie)).session);
  // The provider has forgotten the code.
  assert.deepEqual(await followBack(server, back, cookie), refusal('invalid'));
  // A new code for the same sign-in.
  assert.deepEqual(await followBack(server, server.provider.authorize(url), cookie), refusal('expired'));
});

test('replay: a sign-in expires after ten minutes', async (t) => {
  const server = await oidcServer(t);
  const { url, cookie } = await beginSignIn(server);
  const back = server.provider.authorize(url);
  server.world.advance(10 * 60_000);
  assert.deepEqual(await followBack(server, back, cookie), refusal('expired'));
});

test('replay: an ID token of another sign-in is refused, by its nonce', async (t) => {
  const server = await oidcServer(t);
  for (const nonce of ['of another sign-in', undefined]) {
    server.provider.claims = { nonce };
    assert.deepEqual(await signInByOidc(server), refusal('invalid'));
  }
});

test('downgrade: each sign-in uses the code flow with PKCE S256, and a code does not work without it', async (t) => {
  const server = await oidcServer(t);
  server.provider.metadata = { code_challenge_methods_supported: ['plain'] };
  const { url, cookie } = await beginSignIn(server);
  const { searchParams } = new URL(url);
  assert.equal(searchParams.get('response_type'), 'code');
  assert.equal(searchParams.get('code_challenge_method'), 'S256');
  const weaker = new URL(url);
  weaker.searchParams.delete('code_challenge');
  const back = server.provider.authorize(weaker.href);
  assert.deepEqual(await followBack(server, back, cookie), refusal('invalid'));
});

test('downgrade: an ID token signed with the client secret is refused', async (t) => {
  const server = await oidcServer(t);
  server.provider.metadata = { id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'] };
  const secret = Buffer.from(clientSecret);
  server.provider.token = (claims) => new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(secret);
  assert.deepEqual(await signInByOidc(server), refusal('invalid'));
});

test('alg none: an unsigned ID token is refused, even if the provider lists it', async (t) => {
  const server = await oidcServer(t);
  server.provider.token = async (claims) => new UnsecuredJWT(claims).encode();
  for (const listed of [['RS256'], ['RS256', 'none']]) {
    server.provider.metadata = { id_token_signing_alg_values_supported: listed };
    // The metadata is read again after an hour.
    server.world.advance(60 * 60_000);
    assert.deepEqual(await signInByOidc(server), refusal('invalid'));
  }
});

test('a changed ID token is refused', async (t) => {
  const server = await oidcServer(t);
  const { sign } = server.provider;
  server.provider.token = async (claims) => {
    const [header, , signature] = (await sign({ ...claims, groups: [] })).split('.');
    return [header, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.');
  };
  assert.deepEqual(await signInByOidc(server), refusal('invalid'));
});

test('CSRF: a response in a browser that did not begin the sign-in is refused', async (t) => {
  const server = await oidcServer(t);
  const attacker = await beginSignIn(server);
  const victim = await beginSignIn(server);
  const { requests } = server.provider;
  const before = requests.length;
  const back = server.provider.authorize(attacker.url);
  for (const cookie of [
    undefined,
    victim.cookie,
    `${attacker.cookie.slice(0, -4)}AAAA`,
    `${attacker.cookie}; ${victim.cookie}`,
  ]) {
    assert.deepEqual(await followBack(server, back, cookie), refusal('expired'));
  }
  assert.equal(requests.length, before, 'the provider was asked');
});

test('CSRF: another site cannot begin a sign-in', async (t) => {
  const server = await oidcServer(t);
  const headers = { 'Sec-Fetch-Site': 'cross-site' };
  const response = await server.get('/api/v1/session/oidc', undefined, { method: 'POST', headers });
  assert.equal(response.status, 403);
});

test('open redirect: neither parameters nor headers change where the browser goes', async (t) => {
  const server = await oidcServer(t);
  const evil = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', Forwarded: 'host=evil.example' };
  const begun = await server.get(
    '/api/v1/session/oidc',
    undefined,
    fromPage('POST', undefined, undefined, { headers: evil }),
  );
  const { url } = (await begun.json()) as { url: string };
  assert.equal(new URL(url).searchParams.get('redirect_uri'), 'https://vault.example.test/oidc/callback');
  const { url: again, cookie } = await beginSignIn(server);
  const back = server.provider.authorize(again);
  for (const name of ['return_to', 'redirect_uri', 'to', 'next'])
    back.searchParams.set(name, '//evil.example');
  assert.equal((await followBack(server, back, cookie)).location, 'https://vault.example.test/signed-in');
});

test('mix-up of two providers: a response or ID token of another provider is refused', async (t) => {
  const server = await oidcServer(t);
  const { provider } = server;
  const { url, cookie } = await beginSignIn(server);
  for (const iss of ['https://other.example', undefined]) {
    const back = provider.authorize(url);
    if (iss === undefined) back.searchParams.delete('iss');
    else back.searchParams.set('iss', iss);
    assert.deepEqual(await followBack(server, back, cookie), refusal('invalid'));
  }
  provider.claims = { iss: 'https://other.example' };
  assert.deepEqual(await signInByOidc(server), refusal('invalid'));
  assert.equal(eventsOf(server.dataDir, 'session.refuse').length, 3);
});

test('mix-up of two providers: the metadata of another issuer is refused', async (t) => {
  const server = await oidcServer(t);
  server.provider.metadata = { issuer: 'https://other.example' };
  const response = await server.get('/api/v1/session/oidc', undefined, fromPage('POST'));
  assert.equal(response.status, 503);
});

test('mix-up of two providers: a sign-in ends with the provider that it began with, and no account changes over', async (t) => {
  const first = await oidcServer(t);
  const { url, cookie } = await beginSignIn(first);
  const back = first.provider.authorize(url);
  assert((await signInByOidc(first)).session);
  await first.stop();
  const provider = await scriptedProvider(t, first.world.now);
  // The same vault, with other settings.
  const second = await testServer(t, {
    publicUrl: 'https://vault.example.test',
    oidc: settingsOf(provider),
    inPlaceOf: () => first.vault,
  });
  assert.deepEqual(await followBack(second, back, cookie), refusal('expired'));
  // The same subject and name at another issuer is another person.
  assert.deepEqual(await signInByOidc({ ...second, provider }), refusal('name_taken'));
});

test('token for another audience: an ID token for another client is refused', async (t) => {
  const server = await oidcServer(t);
  for (const aud of ['another-client', ['another-client'], undefined]) {
    server.provider.claims = { aud };
    assert.deepEqual(await signInByOidc(server), refusal('invalid'));
  }
  server.provider.claims = { aud: ['vault', 'another-client'], azp: 'another-client' };
  assert.deepEqual(await signInByOidc(server), refusal('invalid'));
});

test('expired and future tokens are refused beyond thirty seconds', async (t) => {
  const server = await oidcServer(t);
  for (const claims of [
    { iat: now() - 600, exp: now() - 120 },
    { exp: undefined },
    { iat: now() + 600, exp: now() + 900 },
    { nbf: now() + 600 },
  ]) {
    server.provider.claims = claims;
    assert.deepEqual(await signInByOidc(server), refusal('invalid'), JSON.stringify(claims));
  }
  // The vault's clock decides about iat, that of the system about exp.
  server.provider.claims = { iat: Math.floor(server.world.now() / 1000) + 20, exp: now() - 1 };
  assert((await signInByOidc(server)).session);
});

test('unverified e-mail: it grants no role and no name', async (t) => {
  const values = { viewer: [], operator: [], admin: ['boss@example.test'] };
  const server = await oidcServer(t, { roles: { claim: 'email', values, byDefault: undefined } });
  const email = 'boss@example.test';
  for (const email_verified of [false, undefined, 'true']) {
    server.provider.claims = { preferred_username: undefined, email, email_verified };
    assert.deepEqual(await signInByOidc(server), refusal('not_permitted'));
  }
  // An ID token with the address, and a userinfo response that calls another one verified.
  server.provider.claims = { email, email_verified: undefined };
  server.provider.userinfo = { email: 'else@example.test', email_verified: true };
  server.world.advance(60 * 60_000);
  assert.deepEqual(await signInByOidc(server), refusal('not_permitted'));
});

test('many failed responses from one address have to wait, without a request to the provider', async (t) => {
  const server = await oidcServer(t);
  await makeAdministrator(server.vault, 'root');
  const { url, cookie } = await beginSignIn(server);
  server.provider.claims = { groups: [] };
  for (let count = 0; count < 20; count += 1)
    await followBack(server, new URL('/oidc/callback', url), cookie);
  const { requests } = server.provider;
  const before = requests.length;
  const back = server.provider.authorize(url);
  assert.deepEqual(await followBack(server, back, cookie), refusal('rate_limited'));
  assert.equal(requests.length, before);
});
