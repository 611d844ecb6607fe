/** Back-channel logout: which tokens of the provider end which sessions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SignJWT, UnsecuredJWT } from 'jose';
import { eventsOf } from '../../../harness/http/fixtures.ts';
import { pageWith } from '../../../harness/http/sign-in-fixtures.ts';
import { oidcServer, signInByOidc } from '../../../harness/oidc/oidc-visitor.ts';
import { clientId, clientSecret } from '../../../harness/oidc/scripted-provider.ts';

type Server = Awaited<ReturnType<typeof oidcServer>>;

const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };

const nowOf = ({ world }: Server) => Math.floor(world.now() / 1000);

function claimsFor(server: Server, more: Record<string, unknown> = {}): Record<string, unknown> {
  const now = nowOf(server);
  const usual = { iss: server.provider.issuer, aud: clientId, iat: now, exp: now + 120, jti: 'one', events };
  return JSON.parse(JSON.stringify({ ...usual, ...more }));
}

async function logOut({ get }: Server, token: string): Promise<number> {
  const body = new URLSearchParams({ logout_token: token, another: 'parameter' });
  return (await get('/oidc/backchannel-logout', undefined, { method: 'POST', body })).status;
}

async function isSignedIn(server: Server, session: string | undefined): Promise<boolean> {
  return (await pageWith(server, session ?? '').send('GET', '/api/v1/session')).status === 200;
}

test('a logout token ends the sessions of its session at the provider, or all of its person', async (t) => {
  const server = await oidcServer(t);
  const sessions: (string | undefined)[] = [];
  for (const sid of ['s1', 's2', 's3']) {
    server.provider.claims = { sid };
    sessions.push((await signInByOidc(server)).session);
  }
  const seen = async () => [
    await isSignedIn(server, sessions[0]),
    await isSignedIn(server, sessions[1]),
    await isSignedIn(server, sessions[2]),
  ];
  const { sign } = server.provider;
  assert.deepEqual(await seen(), [true, true, true]);
  assert.equal(await logOut(server, await sign(claimsFor(server, { sid: 's1', jti: '1' }))), 204);
  assert.deepEqual(await seen(), [false, true, true]);
  const second = claimsFor(server, { sub: 'subject-1', sid: 's2', jti: '2' });
  assert.equal(await logOut(server, await sign(second)), 204);
  assert.deepEqual(await seen(), [false, false, true]);
  assert.equal(await logOut(server, await sign(claimsFor(server, { sub: 'another', jti: '3' }))), 204);
  assert.deepEqual(await seen(), [false, false, true]);
  assert.equal(await logOut(server, await sign(claimsFor(server, { sub: 'subject-1', jti: '4' }))), 204);
  assert.deepEqual(await seen(), [false, false, false]);
  const ended = eventsOf(server.dataDir, 'session.end');
  assert.deepEqual(
    ended.map(({ actor, detail }) => [actor, detail.how]),
    Array(3).fill(['system', 'signed out at the provider']),
  );
});

test('a logout token works once', async (t) => {
  const server = await oidcServer(t);
  const token = await server.provider.sign(claimsFor(server, { sub: 'subject-1' }));
  assert.equal(await logOut(server, token), 204);
  const { session } = await signInByOidc(server);
  assert.equal(await logOut(server, token), 400);
  assert(await isSignedIn(server, session));
});

test('an invalid logout token ends nothing', async (t) => {
  const server = await oidcServer(t);
  const { session } = await signInByOidc(server);
  const { sign } = server.provider;
  const sub = 'subject-1';
  const now = nowOf(server);
  const invalid: Record<string, string> = {
    'alg none': new UnsecuredJWT(claimsFor(server, { sub })).encode(),
    'signed with the client secret': await new SignJWT(claimsFor(server, { sub }))
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from(clientSecret)),
    'another audience': await sign(claimsFor(server, { sub, aud: 'another' })),
    'another issuer': await sign(claimsFor(server, { sub, iss: 'https://other.example' })),
    'an ID token': await sign(claimsFor(server, { sub, nonce: 'n' })),
    'no event': await sign(claimsFor(server, { sub, events: {} })),
    'no jti': await sign(claimsFor(server, { sub, jti: undefined })),
    'neither sub nor sid': await sign(claimsFor(server)),
    expired: await sign(claimsFor(server, { sub, exp: now - 60 })),
    old: await sign(claimsFor(server, { sub, iat: now - 3600 })),
    future: await sign(claimsFor(server, { sub, iat: now + 3600 })),
    'no token': 'x',
  };
  for (const [name, token] of Object.entries(invalid)) assert.equal(await logOut(server, token), 400, name);
  assert(await isSignedIn(server, session));
});
