/** Sign-in by OpenID Connect on the command line: the device flow between program, vault and provider. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '../../../../src/base/secret.ts';
import { serverContext } from '../../../../src/http/server/listener-context.ts';
import { eventsOf } from '../../../harness/http/fixtures.ts';
import { fromPage } from '../../../harness/http/sign-in-fixtures.ts';
import type { TestServer } from '../../../harness/http/test-server.ts';
import { oidcServer, signInByOidc } from '../../../harness/oidc/oidc-visitor.ts';
import { settingsOf } from '../../../harness/oidc/scripted-provider.ts';

type Begun = {
  readonly handle: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly verification_uri_complete: string | null;
  readonly interval: number;
  readonly expires_at: string;
};

type Answer = {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly body: Readonly<Record<string, unknown>>;
};

const allowed = { deviceFlow: true };

const handleOfNoOne = 'a'.repeat(43);

async function post({ get }: Pick<TestServer, 'get'>, path: string, body?: unknown): Promise<Answer> {
  const response = await get(path, undefined, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'User-Agent': 'certificate-vault/test' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    retryAfter: response.headers.get('Retry-After'),
    body: JSON.parse(text) as Answer['body'],
  };
}

async function begin(server: Pick<TestServer, 'get'>): Promise<Begun> {
  const { status, body } = await post(server, '/api/v1/session/device');
  assert.equal(status, 201, JSON.stringify(body));
  return body as Begun;
}

/** Asks for the session, after the interval. */
async function poll(server: Pick<TestServer, 'get' | 'world'>, handle: string, wait = 5000): Promise<Answer> {
  server.world.advance(wait);
  return post(server, '/api/v1/session/device/token', { handle });
}

/** A session of a person who has confirmed, as its token. */
async function signIn(server: Awaited<ReturnType<typeof oidcServer>>): Promise<string> {
  server.provider.deviceState = 'confirmed';
  const { status, body } = await poll(server, (await begin(server)).handle);
  assert.equal(status, 201, JSON.stringify(body));
  return String(body.token);
}

const code = ({ status, body }: Answer) => [status, body.code];

test('a person who confirms the code at the provider gets a bearer session with their role', async (t) => {
  const server = await oidcServer(t, allowed);
  const begun = await begin(server);
  const { issuer } = server.provider;
  assert.match(begun.handle, /^[\w-]{43}$/);
  assert.deepEqual(
    { ...begun, handle: '', expires_at: Date.parse(begun.expires_at) - server.world.now() },
    {
      handle: '',
      user_code: 'ABCD-EFG1',
      verification_uri: `${issuer}/activate`,
      verification_uri_complete: `${issuer}/activate?user_code=ABCD-EFG1`,
      interval: 5,
      expires_at: 600_000,
    },
  );
  const waiting = await poll(server, begun.handle);
  assert.deepEqual([waiting.status, waiting.body], [202, { interval: 5 }]);
  server.provider.deviceState = 'confirmed';
  const { status, body } = await poll(server, begun.handle);
  assert.equal(status, 201, JSON.stringify(body));
  const { token, expires_at: expiresAt, ...person } = body;
  assert.deepEqual(person, { name: 'alice', role: 'admin' });
  assert.equal(Date.parse(String(expiresAt)) - server.world.now(), 12 * 60 * 60_000);
  const whoami = await server.get('/api/v1/whoami', String(token));
  assert.deepEqual([whoami.status, ((await whoami.json()) as { name: string }).name], [200, 'alice']);
  const [created] = eventsOf(server.dataDir, 'session.create');
  assert.deepEqual([created?.actor, created?.detail], ['admin:alice', { method: 'device_flow' }]);
  assert.doesNotMatch(server.log.lines.join('\n'), new RegExp(`device-code-|${begun.handle}|vs_`));
});

test('a bearer session changes data without Origin, and a cookie with its token does not exist', async (t) => {
  const server = await oidcServer(t, allowed);
  const token = await signIn(server);
  const create = (headers: Record<string, string>) =>
    server.get('/api/v1/administrators', undefined, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({ name: 'bob', password: 'correct horse battery staple', role: 'viewer' }),
    });
  const page = { 'Sec-Fetch-Site': 'same-origin' };
  for (const value of [token, token.slice(3)]) {
    assert.equal((await create({ ...page, Cookie: `__Host-vault_session=${value}` })).status, 403);
  }
  const { session } = await signInByOidc(server);
  const cookie = session?.split('=')[1] ?? '';
  for (const value of [cookie, `vs_${cookie}`]) {
    assert.equal((await create({ Authorization: `Bearer ${value}` })).status, 403);
  }
  assert.equal((await create({ Authorization: `Bearer ${token}` })).status, 201);
});

test('an unconfirmed sign-in must wait, longer after slow_down, and the provider is asked only then', async (t) => {
  const server = await oidcServer(t, allowed);
  const { handle } = await begin(server);
  const asked = () => server.provider.requests.filter((line) => line === 'POST /token').length;
  const early = await poll(server, handle, 3500);
  assert.deepEqual([...code(early), early.retryAfter], [429, 'rate_limited', '2']);
  assert.equal(asked(), 0);
  server.provider.deviceState = 'slow_down';
  assert.deepEqual((await poll(server, handle, 1500)).body, { interval: 10 });
  server.provider.deviceState = 'confirmed';
  assert.deepEqual(code(await poll(server, handle)), [429, 'rate_limited']);
  assert.equal(asked(), 1);
  // Of two requests at the same time, one asks.
  server.world.advance(5000);
  const both = await Promise.all([poll(server, handle, 0), poll(server, handle, 0)]);
  assert.equal(asked(), 2);
  assert.equal(both.filter(({ status }) => status === 201).length, 1, JSON.stringify(both));
});

test('a sign-in that was confirmed once gives no second session', async (t) => {
  const server = await oidcServer(t, allowed);
  server.provider.deviceState = 'confirmed';
  const { handle } = await begin(server);
  assert.equal((await poll(server, handle)).status, 201);
  assert.deepEqual(code(await poll(server, handle)), [409, 'sign_in_expired']);
  assert.equal(eventsOf(server.dataDir, 'session.create').length, 1);
});

test('another node on the same database finishes a sign-in', async (t) => {
  const server = await oidcServer(t, allowed);
  const { handle } = await begin(server);
  server.provider.deviceState = 'confirmed';
  const oidc = settingsOf(server.provider, allowed);
  const other = serverContext(server.vault, { version: '0.0.0-test', publicUrl: oidc.publicUrl, oidc });
  server.world.advance(5000);
  const visitor = { actor: { name: 'anonymous', ip: '192.0.2.7' }, userAgent: undefined };
  const result = await other.oidc?.device.finish(new Secret(handle), visitor);
  assert(result !== undefined && 'token' in result);
  assert.equal((await server.get('/api/v1/whoami', result.token.expose())).status, 200);
});

test('the handle of another program, and one that was never issued, give no session', async (t) => {
  const server = await oidcServer(t, allowed);
  const [one, other] = [await begin(server), await begin(server)];
  server.provider.deviceState = 'confirmed';
  assert.deepEqual(code(await poll(server, handleOfNoOne)), [409, 'sign_in_expired']);
  for (const handle of ['', `${one.handle}a`, 'device-code-0', 7]) {
    assert.deepEqual(code(await poll(server, handle as string)), [400, 'invalid_request']);
  }
  // The sealed authorization of one does not open in the row of the other.
  const { vault } = server;
  const rows = await vault.db.reader.selectFrom('oidc_uses').select(['id_hash', 'result']).execute();
  await vault.db.write(async (writer) => {
    for (const [index, { id_hash: id }] of rows.entries()) {
      const result = rows[(index + 1) % rows.length]?.result ?? null;
      await writer.updateTable('oidc_uses').set({ result }).where('id_hash', '=', id).execute();
    }
  });
  for (const { handle } of [one, other]) {
    assert.deepEqual(code(await poll(server, handle)), [409, 'sign_in_expired']);
  }
  const [refused] = eventsOf(server.dataDir, 'session.refuse');
  assert.deepEqual(refused?.detail, {
    reason: 'unknown, used or expired device sign-in',
    method: 'device_flow',
  });
});

test('a sign-in that the person declines ends', async (t) => {
  const server = await oidcServer(t, allowed);
  const { handle } = await begin(server);
  server.provider.deviceState = 'access_denied';
  const declined = await poll(server, handle);
  assert.deepEqual(code(declined), [403, 'forbidden']);
  assert.equal(declined.body.detail, 'The sign-in was declined at the identity provider.');
  server.provider.deviceState = 'confirmed';
  assert.deepEqual(code(await poll(server, handle)), [409, 'sign_in_expired']);
});

test('a sign-in expires when the provider says so, and after ten minutes at the latest', async (t) => {
  const server = await oidcServer(t, allowed);
  server.provider.device = { expires_in: 30 };
  const short = await begin(server);
  server.provider.device = { expires_in: 86_400 };
  const [long, gone] = [await begin(server), await begin(server)];
  server.provider.deviceState = 'expired_token';
  assert.deepEqual(code(await poll(server, gone.handle)), [409, 'sign_in_expired']);
  server.provider.deviceState = 'confirmed';
  assert.deepEqual(code(await poll(server, short.handle, 25_000)), [409, 'sign_in_expired']);
  assert.deepEqual(code(await poll(server, long.handle, 570_000)), [409, 'sign_in_expired']);
  assert.equal(eventsOf(server.dataDir, 'session.create').length, 0);
});

test('a person without a role and one with the name of another are refused, as in a browser', async (t) => {
  const server = await oidcServer(t, allowed);
  await signIn(server);
  server.provider.claims = { sub: 'subject-2' };
  const taken = await poll(server, (await begin(server)).handle);
  assert.deepEqual(code(taken), [403, 'forbidden']);
  assert.equal(taken.body.detail, 'Another administrator of the vault has your name.');
  // They lose the open sessions with the role.
  server.provider.claims = { groups: ['strangers'] };
  const unknown = await poll(server, (await begin(server)).handle);
  assert.match(String(unknown.body.detail), /none of your groups has a role/);
  const reasons = eventsOf(server.dataDir, 'session.refuse').map(({ detail }) => detail.reason);
  assert.deepEqual(reasons, ['name of another administrator', 'no role for this person']);
  assert.deepEqual(eventsOf(server.dataDir, 'session.end')[0]?.detail, { how: 'role lost at the provider' });
});

for (const [name, claims] of [
  ['an unverified email address', { email: 'boss@example.test', email_verified: false }],
  ['a missing email address', {}],
] as const) {
  test(`a role by email is not given for ${name}`, async (t) => {
    const roles = {
      claim: 'email',
      values: { viewer: [], operator: [], admin: ['boss@example.test'] },
      byDefault: undefined,
    };
    const server = await oidcServer(t, { ...allowed, roles });
    server.provider.claims = claims;
    server.provider.deviceState = 'confirmed';
    assert.deepEqual(code(await poll(server, (await begin(server)).handle)), [403, 'forbidden']);
  });
}

for (const [name, claims] of [
  ['for another audience', { aud: 'another' }],
  ['of another issuer', { iss: 'https://other.example.test' }],
  ['that has expired', { exp: 1 }],
  ['of the future', { iat: Math.floor(Date.now() / 1000) + 3600 }],
] as const) {
  test(`an ID token ${name} gives no session`, async (t) => {
    const server = await oidcServer(t, allowed);
    server.provider.claims = claims;
    server.provider.deviceState = 'confirmed';
    const { handle } = await begin(server);
    const refused = await poll(server, handle);
    assert.deepEqual(code(refused), [403, 'forbidden']);
    assert.match(String(refused.body.detail), /the audit log has the reason/);
    server.provider.claims = {};
    assert.deepEqual(code(await poll(server, handle)), [409, 'sign_in_expired']);
  });
}

test('an ID token with a wrong signature, and a response without one, give no session', async (t) => {
  const server = await oidcServer(t, allowed);
  server.provider.deviceState = 'confirmed';
  const { token } = server.provider;
  for (const forge of [
    async (claims: Record<string, unknown>) => `${(await token(claims)).slice(0, -8)}AAAAAAAA`,
    async () => undefined as unknown as string,
  ]) {
    server.provider.token = forge;
    assert.deepEqual(code(await poll(server, (await begin(server)).handle)), [403, 'forbidden']);
  }
});

for (const [name, device] of [
  ['without a device code', { device_code: undefined }],
  ['with a page that is not encrypted', { verification_uri: 'http://login.example.test/activate' }],
  ['with a script as page', { verification_uri_complete: 'javascript:alert(1)' }],
  ['with a code that controls a terminal', { user_code: 'AB\u001b[2J' }],
  ['with a lifetime that is not a number', { expires_in: 'soon' }],
  ['with a huge device code', { device_code: 'a'.repeat(5000) }],
] as const) {
  test(`a response of the provider ${name} begins no sign-in`, async (t) => {
    const server = await oidcServer(t, allowed);
    server.provider.device = device;
    assert.deepEqual(code(await post(server, '/api/v1/session/device')), [503, 'unavailable']);
    const rows = await server.vault.db.reader.selectFrom('oidc_uses').select('id_hash').execute();
    assert.deepEqual(rows, []);
  });
}

test('a provider that is down in between ends no sign-in', async (t) => {
  const server = await oidcServer(t, allowed);
  const { handle } = await begin(server);
  server.provider.stop();
  assert.deepEqual(code(await poll(server, handle)), [503, 'unavailable']);
  const rows = await server.vault.db.reader.selectFrom('oidc_uses').select('result').execute();
  assert(rows[0]?.result);
});

test('without the setting, or without a provider that offers it, no sign-in begins', async (t) => {
  const off = await oidcServer(t);
  const { body, status } = await post(off, '/api/v1/session/device');
  assert.equal(status, 404);
  assert.match(String(body.detail), /oidc-device-flow/);
  assert.deepEqual(off.provider.requests, []);
  const lacking = await oidcServer(t, allowed);
  lacking.provider.device = undefined;
  const refused = await post(lacking, '/api/v1/session/device');
  assert.equal(refused.status, 404);
  assert.match(String(refused.body.detail), /identity provider does not offer it/);
});

test('a page of another site can neither begin nor finish a sign-in', async (t) => {
  const server = await oidcServer(t, allowed);
  const headers = { 'Sec-Fetch-Site': 'cross-site', 'Content-Type': 'application/json' };
  const body = JSON.stringify({ handle: handleOfNoOne });
  for (const path of ['/api/v1/session/device', '/api/v1/session/device/token']) {
    const init = { method: 'POST', headers, ...(path.endsWith('token') && { body }) };
    assert.equal((await server.get(path, undefined, init)).status, 403);
  }
});

test('one address begins five sign-ins and one more a minute, and others still begin theirs', async (t) => {
  const server = await oidcServer(t, allowed);
  for (let index = 0; index < 5; index += 1) await begin(server);
  const refused = await post(server, '/api/v1/session/device');
  assert.deepEqual([...code(refused), refused.retryAfter], [429, 'rate_limited', '60']);
  await server.context.oidc?.device.begin('192.0.2.7');
  server.world.advance(60_000);
  await begin(server);
});

test('all addresses together have a limit, and at most a hundred sign-ins wait', async (t) => {
  const server = await oidcServer(t, allowed);
  const device = server.context.oidc?.device;
  let index = 0;
  const beginElsewhere = async () => {
    index += 1;
    return device?.begin(`10.0.${index >> 8}.${index & 255}`);
  };
  for (let count = 0; count < 30; count += 1) await beginElsewhere();
  await assert.rejects(beginElsewhere(), { code: 'rate_limited', retryAfter: 3 });
  for (let count = 0; count < 70; count += 1) {
    server.world.advance(3000);
    await beginElsewhere();
  }
  server.world.advance(3000);
  await assert.rejects(beginElsewhere(), { code: 'rate_limited', retryAfter: 60 });
  const asked = server.provider.requests.filter((line) => line === 'POST /device').length;
  assert.equal(asked, 100);
  server.world.advance(600_000);
  await beginElsewhere();
});

test('an address that guesses handles must pause', async (t) => {
  const server = await oidcServer(t, allowed);
  const { handle } = await begin(server);
  for (let index = 0; index < 20; index += 1) {
    assert.equal((await poll(server, handleOfNoOne, 0)).status, 409);
  }
  assert.deepEqual(code(await poll(server, handleOfNoOne, 0)), [429, 'rate_limited']);
  // The pause ends.
  assert.equal((await poll(server, handle)).status, 202);
});

test('a bearer session ends by signing out, by another session of its person, and with the person', async (t) => {
  const server = await oidcServer(t, allowed);
  const works = async (token: string) => (await server.get('/api/v1/session', token)).status === 200;
  const [first, second, third] = [await signIn(server), await signIn(server), await signIn(server)];
  assert.equal((await server.get('/api/v1/session', first, { method: 'DELETE' })).status, 204);
  assert.deepEqual([await works(first), await works(second)], [false, true]);
  const sessions = (await (await server.get('/api/v1/sessions', second)).json()) as {
    readonly id: number;
    readonly current: boolean;
    readonly user_agent: string;
  }[];
  assert(sessions.every(({ user_agent: agent }) => agent === 'certificate-vault/test'));
  const other = sessions.find(({ current }) => !current)?.id;
  const { session } = await signInByOidc(server);
  const ended = await server.get(`/api/v1/sessions/${other}`, undefined, {
    ...fromPage('DELETE'),
    headers: { ...fromPage('DELETE').headers, Cookie: session ?? '' },
  });
  assert.equal(ended.status, 204);
  assert.deepEqual([await works(second), await works(third)], [true, false]);
  await server.vault.db.write((writer) =>
    writer.deleteFrom('administrators').where('name', '=', 'alice').execute(),
  );
  assert.equal(await works(second), false);
  const refused = await server.get('/api/v1/administrators', second);
  const { detail } = (await refused.json()) as { detail: string };
  assert.deepEqual(
    [refused.status, detail],
    [403, 'The session has expired or was ended. Sign in again: vault login --oidc'],
  );
});

test('a bearer session ends after 30 minutes without a request', async (t) => {
  const server = await oidcServer(t, allowed);
  const token = await signIn(server);
  server.world.advance(30 * 60_000);
  const response = await server.get('/api/v1/whoami', token);
  assert.equal(response.status, 401);
});

test('a back-channel logout of the provider ends a bearer session', async (t) => {
  const server = await oidcServer(t, allowed);
  server.provider.claims = { sid: 'session-7' };
  const token = await signIn(server);
  const now = Math.floor(server.world.now() / 1000);
  const logout = await server.provider.sign(
    {
      ...{ iss: server.provider.issuer, aud: 'vault', sid: 'session-7', jti: 'one', iat: now, exp: now + 60 },
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    },
    { typ: 'logout+jwt' },
  );
  const response = await server.get('/oidc/backchannel-logout', undefined, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: logout }),
  });
  assert.equal(response.status, 204);
  assert.equal((await server.get('/api/v1/whoami', token)).status, 401);
});
