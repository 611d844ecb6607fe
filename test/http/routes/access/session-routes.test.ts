/** Signing in, seeing and ending sessions, and changing the password, over HTTP; what must fail comes first. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Secret } from '../../../../src/base/secret.ts';
import { deleteAdministrator, resetPassword } from '../../../../src/domain/access/administrators.ts';
import { Passwords } from '../../../../src/domain/access/passwords.ts';
import { defaultSessionLimits } from '../../../../src/domain/access/sessions.ts';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { outside, refuse } from '../../../harness/database/outside-database.ts';
import { type CheckedServer, checkedServer, codeOf } from '../../../harness/http/checked.ts';
import { eventsOf, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';
import {
  cheapHash,
  fromPage,
  goodPassword,
  makeAdministrator,
  otherPassword,
  type Page,
  pageWith,
  signIn,
} from '../../../harness/http/sign-in-fixtures.ts';
import { testVault } from '../../../harness/test-vault.ts';

const minute = 60_000;

async function withAlice(
  t: Parameters<typeof checkedServer>[0],
  options: Parameters<typeof checkedServer>[1] = {},
): Promise<CheckedServer> {
  const server = await checkedServer(t, options);
  await makeAdministrator(server.vault, 'alice');
  return server;
}

const post = (server: CheckedServer, body: unknown) =>
  server.get('/api/v1/session', undefined, fromPage('POST', body));

const stateOf = async ({ send }: Page) => (await send('GET', '/api/v1/session')).status;

/** The whole answer, but for what every answer has of its own. */
async function comparable(response: Response) {
  const own = ['date', 'x-request-id'];
  const headers = [...response.headers].filter(([name]) => !own.includes(name));
  return { status: response.status, headers, body: await response.text() };
}

suite('a sign-in that fails', () => {
  test('gets the same response for unknown names, wrong passwords and passwords of others, and no cookie', async (t) => {
    const server = await withAlice(t);
    await makeAdministrator(server.vault, 'bob', otherPassword);
    const answers = [];
    for (const [name, password] of [
      ['alice', 'wrong'],
      ['nobody', goodPassword],
      ['alice', otherPassword],
      ['bob', goodPassword],
      ['alice ', goodPassword],
      ['admin:alice', goodPassword],
      ["' or 1=1 --", 'x'],
    ]) {
      answers.push(await comparable(await post(server, { name, password })));
    }
    assert.equal(answers[0]?.status, 401);
    assert.match(answers[0]?.body ?? '', /Wrong name or password/);
    assert(!JSON.stringify(answers).includes('set-cookie'));
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
  });

  test('is recorded with IP address and request id, without the password or an unknown name', async (t) => {
    const server = await withAlice(t);
    await post(server, { name: 'ALICE', password: 'wrong-password-of-mine' });
    await post(server, { name: 'my-password-in-the-wrong-field', password: 'x' });
    const events = eventsOf(server.dataDir, 'session.refuse');
    assert.deepEqual(
      events.map(({ actor, resource, detail, ip }) => [actor, resource, detail, ip]),
      [
        ['anonymous', 'administrator:alice', { reason: 'wrong password' }, '127.0.0.1'],
        ['anonymous', 'administrator:unknown', { reason: 'unknown name' }, '127.0.0.1'],
      ],
    );
    assert(events.every(({ request_id }) => request_id !== null));
    const told = server.log.lines.join() + JSON.stringify(events);
    assert.doesNotMatch(told, /wrong-password-of-mine|in-the-wrong-field/);
  });

  test('is rate limited after five failures, even with the right password, until the pause is over', async (t) => {
    const server = await withAlice(t);
    for (let n = 0; n < 5; n += 1) {
      assert.equal((await post(server, { name: 'alice', password: 'wrong' })).status, 401);
    }
    const limited = await post(server, { name: 'alice', password: goodPassword });
    assert.deepEqual([limited.status, limited.headers.get('Retry-After')], [429, '1']);
    assert.equal(await codeOf(limited), 'rate_limited');
    assert.equal(eventsOf(server.dataDir, 'session.refuse').length, 5);
    server.world.advance(1000);
    assert.equal(await stateOf(await signIn(server, 'alice')), 200);
  });

  test('counts once per attempt when many are concurrent', async (t) => {
    const server = await withAlice(t);
    const attempts = Array.from({ length: 12 }, () => post(server, { name: 'alice', password: 'wrong' }));
    const statuses = (await Promise.all(attempts)).map(({ status }) => status);
    assert.deepEqual(statuses.toSorted(), [...Array(5).fill(401), ...Array(7).fill(429)]);
  });

  test('returns 400 for an invalid name or password without echoing the password', async (t) => {
    const server = await withAlice(t);
    for (const body of [
      {},
      { name: 'alice' },
      { name: 'alice', password: '' },
      { name: 'alice', password: 7 },
      { name: ['alice'], password: 'secret-thing' },
      { name: 'alice', password: 'secret-thing', remember: true },
      { name: 'a'.repeat(257), password: 'secret-thing' },
      { name: 'alice', password: 'secret-thing'.repeat(100) },
      null,
    ]) {
      const response = await post(server, body);
      assert.equal(response.status, 400, JSON.stringify(body));
      assert.doesNotMatch(await response.text(), /secret-thing/);
    }
    assert.equal((await post(server, { name: 'a', password: 'x'.repeat(20_000) })).status, 413);
  });
});

suite('a session', () => {
  test('has an HttpOnly, SameSite=Strict cookie whose token is not stored or logged', async (t) => {
    for (const [publicUrl, name, end] of [
      [undefined, 'vault_session', ''],
      ['http://vault.example.test', 'vault_session', ''],
      ['https://vault.example.test', '__Host-vault_session', '; Secure'],
    ] as const) {
      const server = await withAlice(t, { ...(publicUrl !== undefined && { publicUrl }) });
      const response = await post(server, { name: 'alice', password: goodPassword });
      const [cookie = '', ...others] = response.headers.getSetCookie();
      const form = new RegExp(`^${name}=([\\w.-]+); Max-Age=43200; Path=/; HttpOnly; SameSite=Strict${end}$`);
      const token = form.exec(cookie)?.[1] ?? '';
      assert(token !== '' && others.length === 0, cookie);
      const { jti } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
      const rows = outside(server.dataDir, (db) => db.prepare('select * from sessions').all());
      assert(!JSON.stringify(rows).includes(jti));
      assert(!server.log.lines.join().includes(token));
      const wrongName = name === 'vault_session' ? '__Host-vault_session' : 'vault_session';
      assert.equal(await stateOf(pageWith(server, `${name}=${token}`)), 200);
      assert.equal(await stateOf(pageWith(server, `${wrongName}=${token}`)), 401);
    }
  });

  test('says who is signed in, and is recorded', async (t) => {
    const server = await withAlice(t);
    const { send } = await signIn(server, 'Alice');
    const body = await (await send('GET', '/api/v1/session')).json();
    const now = server.world.now();
    const expires_at = new Date(now + 12 * 60 * minute).toISOString().replace('.000', '');
    const fields = [
      'name',
      'role',
      'scopes',
      'reach',
      'profiles',
      'second_approval',
      'sign_in',
      'second_factor_needed',
      'created_at',
      'expires_at',
    ];
    assert.deepEqual(Object.keys(body as object), fields);
    assert.equal((body as { name: string }).name, 'alice');
    assert.equal(Date.parse((body as { expires_at: string }).expires_at), Date.parse(expires_at));
    const [event] = eventsOf(server.dataDir, 'session.create');
    assert.deepEqual([event?.actor, event?.resource, event?.ip], ['admin:alice', 'session:1', '127.0.0.1']);
    const people = (await (await send('GET', '/api/v1/administrators')).json()) as {
      last_signed_in_at: string;
    }[];
    assert.equal(Date.parse(people[0]?.last_signed_in_at ?? ''), now);
  });

  test('is rejected for anonymous clients, forged tokens and API keys', async (t) => {
    const server = await withAlice(t);
    const { cookie } = await signIn(server, 'alice');
    const other = await withAlice(t);
    const anonymous = await server.get('/api/v1/session');
    assert.deepEqual([anonymous.status, await codeOf(anonymous)], [401, 'unauthenticated']);
    for (const forged of [`${cookie}x`, cookie.slice(0, -2), 'vault_session=x', `${cookie}; ${cookie}`]) {
      assert.equal(await stateOf(pageWith(server, forged)), 401, forged);
    }
    assert.equal(await stateOf(pageWith(other, cookie)), 401, 'of another vault');
    const { raw } = await makeKey(server.vault);
    for (const [method, path] of [
      ['GET', '/api/v1/session'],
      ['DELETE', '/api/v1/session'],
      ['GET', '/api/v1/sessions'],
      ['PUT', '/api/v1/session/password'],
    ] as const) {
      const response = await server.get(path, raw, { method, headers: { Cookie: cookie } });
      assert.equal(response.status, 403, `${method} ${path}`);
    }
  });

  test('ends after half an hour without a request, and each request restarts that time', async (t) => {
    const server = await withAlice(t);
    const page = await signIn(server, 'alice');
    for (let n = 0; n < 3; n += 1) {
      server.world.advance(29 * minute);
      assert.equal(await stateOf(page), 200);
    }
    server.world.advance(30 * minute);
    assert.equal(await stateOf(page), 401);
  });

  test('ends after twelve hours in any case', async (t) => {
    const server = await withAlice(t);
    const page = await signIn(server, 'alice');
    for (let n = 0; n < 36; n += 1) {
      assert.equal(await stateOf(page), 200);
      server.world.advance(20 * minute);
    }
    assert.equal(await stateOf(page), 401);
  });

  test('ends at the configured limit, even if it began under a longer one', async (t) => {
    const server = await withAlice(t);
    const { cookie } = await signIn(server, 'alice');
    await server.stop();
    await server.close();
    const { dataDir, world } = server;
    const shorter = { ...defaultSessionLimits, idle: 10 * minute, lifetime: 15 * minute };
    const again = await checkedServer(t, { dataDir, world, sessionLimits: shorter });
    world.advance(9 * minute);
    assert.equal(await stateOf(pageWith(again, cookie)), 200, 'it outlives a restart');
    world.advance(6 * minute);
    assert.equal(await stateOf(pageWith(again, cookie)), 401);
  });

  test('records its use once a minute, and continues if that fails', async (t) => {
    const server = await withAlice(t);
    const page = await signIn(server, 'alice');
    const used = () =>
      outside(server.dataDir, (db) => db.prepare('select last_used_at from sessions').pluck().get());
    const began = server.world.now();
    server.world.advance(minute - 1);
    assert.equal(await stateOf(page), 200);
    assert.equal(used(), began);
    server.world.advance(1);
    await Promise.all([1, 2, 3].map(() => stateOf(page)));
    assert.equal(used(), began + minute);
    refuse(server.dataDir, 'update', 'sessions');
    server.world.advance(5 * minute);
    assert.equal(await stateOf(page), 200);
    assert.match(server.log.lines.join('\n'), /failed to record the last use of a session/);
  });
});

suite('a session ends immediately', () => {
  test('on sign-out in every tab, and the cookie is cleared', async (t) => {
    const server = await withAlice(t);
    const page = await signIn(server, 'alice');
    const otherTab = pageWith(server, page.cookie);
    const elsewhere = await signIn(server, 'alice');
    const response = await page.send('DELETE', '/api/v1/session');
    assert.equal(response.status, 204);
    const gone = 'vault_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict';
    assert.deepEqual(response.headers.getSetCookie(), [gone]);
    assert.deepEqual(
      [await stateOf(page), await stateOf(otherTab), await stateOf(elsewhere)],
      [401, 401, 200],
    );
    assert.equal((await page.send('DELETE', '/api/v1/session')).status, 401);
    const [event] = eventsOf(server.dataDir, 'session.end');
    assert.deepEqual(
      [event?.actor, event?.resource, event?.detail],
      ['admin:alice', 'session:1', { how: 'signed out' }],
    );
  });

  test('when another session of the same administrator ends it, but not for other administrators', async (t) => {
    const server = await withAlice(t);
    await makeAdministrator(server.vault, 'bob');
    const agent = { headers: { 'User-Agent': `Laptop ${'x'.repeat(1000)}` } };
    const laptop = await signIn(server, 'alice', goodPassword, agent);
    const desk = await signIn(server, 'alice');
    const bob = await signIn(server, 'bob');
    type View = { id: number; current: boolean; ip: string; user_agent: string };
    const list = (await (await desk.send('GET', '/api/v1/sessions')).json()) as View[];
    assert.deepEqual(
      list.map(({ id, current, ip }) => [id, current, ip]),
      [
        [2, true, '127.0.0.1'],
        [1, false, '127.0.0.1'],
      ],
    );
    assert.equal(list[1]?.user_agent.length, 256);
    for (const id of ['1', '2', '0', '999', '01', '1e0', '-1', 'x', '9'.repeat(30)]) {
      const response = await bob.send('DELETE', `/api/v1/sessions/${id}`);
      assert.deepEqual([response.status, await codeOf(response)], [404, 'session_not_found'], id);
    }
    assert.equal((await desk.send('DELETE', '/api/v1/sessions/1')).status, 204);
    assert.deepEqual([await stateOf(laptop), await stateOf(desk), await stateOf(bob)], [401, 200, 200]);
    const [event] = eventsOf(server.dataDir, 'session.end');
    assert.deepEqual(event?.detail, { how: 'ended from another session' });
  });

  test('when another process deletes the administrator or resets the password', async (t) => {
    const server = await withAlice(t);
    await makeAdministrator(server.vault, 'bob');
    const [alice, bob] = [await signIn(server, 'alice'), await signIn(server, 'bob')];
    const { vault } = await testVault(t, { dataDir: server.dataDir, world: server.world });
    const passwords = new Passwords(vault.world, cheapHash);
    await deleteAdministrator(vault, localCli, 'alice', 'goes');
    assert.equal(await stateOf(alice), 401);
    const password = new Secret(otherPassword);
    assert.equal((await resetPassword(vault, passwords, localCli, { name: 'bob', password })).sessions, 1);
    assert.equal(await stateOf(bob), 401);
    assert.equal((await post(server, { name: 'alice', password: goodPassword })).status, 401);
    assert.equal((await post(server, { name: 'bob', password: goodPassword })).status, 401);
    assert.equal(await stateOf(await signIn(server, 'bob', otherPassword)), 200);
  });

  test('when the same person has signed in twenty times since', async (t) => {
    const server = await withAlice(t);
    const first = await signIn(server, 'alice');
    const second = await signIn(server, 'alice');
    for (let n = 0; n < 19; n += 1) await signIn(server, 'alice');
    assert.deepEqual([await stateOf(first), await stateOf(second)], [401, 200]);
  });
});

suite('a change of the password', () => {
  const change = ({ send }: Page, current: string, next: string) =>
    send('PUT', '/api/v1/session/password', { current, new: next });

  test('is rejected with a wrong current password, which is recorded and rate limited', async (t) => {
    const server = await withAlice(t);
    const page = await signIn(server, 'alice');
    for (let n = 0; n < 5; n += 1) {
      const response = await change(page, 'wrong', otherPassword);
      assert.equal(response.status, 400);
      const body = (await response.json()) as { errors: { path: string }[] };
      assert.equal(body.errors[0]?.path, 'current');
    }
    const limited = await change(page, goodPassword, otherPassword);
    assert.deepEqual([limited.status, limited.headers.get('Retry-After')], [429, '1']);
    const events = eventsOf(server.dataDir, 'session.refuse');
    assert.deepEqual(
      events.map(({ actor, resource }) => [actor, resource]),
      Array(5).fill(['admin:alice', 'administrator:alice']),
    );
    server.world.advance(1000);
    assert.equal((await change(page, goodPassword, 'password1234')).status, 400);
    assert.equal((await change(page, goodPassword, 'alice-alice-al')).status, 400);
    await signIn(server, 'alice');
  });

  test('ends the other sessions of the person and keeps this one', async (t) => {
    const server = await withAlice(t);
    const [page, other] = [await signIn(server, 'alice'), await signIn(server, 'alice')];
    assert.equal((await change(page, goodPassword, otherPassword)).status, 204);
    assert.deepEqual([await stateOf(page), await stateOf(other)], [200, 401]);
    assert.equal((await post(server, { name: 'alice', password: goodPassword })).status, 401);
    await signIn(server, 'alice', otherPassword);
    const [event] = eventsOf(server.dataDir, 'administrator.password');
    assert.deepEqual(
      [event?.actor, event?.resource, event?.detail],
      ['admin:alice', 'administrator:alice', { sessions_ended: 1 }],
    );
    assert.doesNotMatch(server.log.lines.join(), /several words|correct horse/);
  });
});

suite('a session where private keys are hidden', () => {
  const files = ['private.key', 'combined.pem', 'keystore.p12', 'archive.tar'];

  test('gets none, not by an API key either, and finds that out beforehand', async (t) => {
    const sessionLimits = { ...defaultSessionLimits, hidesPrivateKeys: true };
    const server = await checkedServer(t, { sessionLimits });
    await makeAdministrator(server.vault, 'alice');
    await makeCertificate(server.vault, 'www');
    const client = await makeKey(server.vault, { name: 'client' });
    const plain = await makeKey(server.vault, { name: 'plain', scopes: ['certificates:read'] });
    const admin = await makeKey(server.vault, { name: 'ci', role: 'admin', scopes: ['certificates:read'] });
    const alice = await signIn(server, 'alice');
    const signedIn = (await (await alice.send('GET', '/api/v1/session')).json()) as { scopes: string[] };
    assert(!signedIn.scopes.includes('private_keys:read'), String(signedIn.scopes));
    for (const file of files) {
      const response = await alice.send('GET', `/api/v1/certificates/www/${file}`);
      assert.equal(response.status, 403, file);
      assert.match(await response.text(), /hide-private-keys/);
    }
    const key = { name: 'new', scopes: ['certificates:read'], certificates: ['*'] };
    for (const [method, path, body] of [
      ['POST', '', { ...key, scopes: ['private_keys:read'] }],
      ['POST', '', { ...key, role: 'admin' }],
      ['PATCH', `/${plain.id}`, { scopes: ['private_keys:read'] }],
      ['PATCH', `/${plain.id}`, { role: 'admin' }],
      ['PATCH', `/${client.id}`, { certificates: ['*'] }],
      ['POST', `/${client.id}/rotate`, {}],
      ['POST', `/${admin.id}/rotate`, {}],
    ] as const) {
      const response = await alice.send(method, `/api/v1/api-keys${path}`, body);
      assert.equal(response.status, 403, `${method} ${path} ${JSON.stringify(body)}`);
    }
    const machines = {
      scopes: ['private_keys:read'],
      certificates: ['*'],
      expires_at: '2099-01-01T00:00:00Z',
    };
    const enrollment = await alice.send('POST', '/api/v1/enrollments', machines);
    assert.equal(enrollment.status, 403);
    assert.match(await enrollment.text(), /vault api-key\\" or \\"vault enrollment\\"/);
    assert.equal(eventsOf(server.dataDir, 'access.refuse').length, files.length + 8);
    // What its client needs goes on, and so does what has nothing to do with private keys.
    assert.equal((await server.get('/api/v1/certificates/www/private.key', client.raw)).status, 200);
    assert.equal((await alice.send('POST', '/api/v1/api-keys', { ...key, role: 'operator' })).status, 201);
    assert.equal((await alice.send('POST', `/api/v1/api-keys/${plain.id}/rotate`, {})).status, 200);
  });
});
