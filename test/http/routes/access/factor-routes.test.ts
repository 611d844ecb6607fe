/** Authenticator apps and recovery codes over HTTP: set-up, the second step of a sign-in, and attacks on both. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { minute, second } from '../../../../src/base/duration.ts';
import { Secret } from '../../../../src/base/secret.ts';
import { resetPassword } from '../../../../src/domain/access/administrators.ts';
import { Passwords } from '../../../../src/domain/access/passwords.ts';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { outside } from '../../../harness/database/outside-database.ts';
import { checkedServer, codeOf } from '../../../harness/http/checked.ts';
import { eventsOf, makeKey } from '../../../harness/http/fixtures.ts';
import {
  appOf,
  factors,
  firstStep,
  secondStep,
  setUpApp,
  signInTwice,
} from '../../../harness/http/second-factors.ts';
import {
  cheapHash,
  cookieOf,
  fromPage,
  goodPassword,
  makeAdministrator,
  otherPassword,
  pageWith,
  signIn,
} from '../../../harness/http/sign-in-fixtures.ts';

const step = 30 * second;

async function withPeople(t: TestContext, options: Parameters<typeof checkedServer>[1] = {}) {
  const server = await checkedServer(t, options);
  await makeAdministrator(server.vault, 'alice');
  await makeAdministrator(server.vault, 'bob', otherPassword);
  const alice = await signIn(server, 'alice');
  const post = (body: unknown) => server.get('/api/v1/session', undefined, fromPage('POST', body));
  return { server, alice, post };
}

suite('an attack on the second step', () => {
  test('by a replayed code fails, also with that of an older step', async (t) => {
    const { server, alice } = await withPeople(t);
    const app = await setUpApp(server, alice);
    const first = await firstStep(server, 'alice');
    assert.equal((await secondStep(server, first, app.code())).status, 401, 'the code of the set-up');
    server.world.advance(step);
    const code = app.code();
    await signInTwice(server, 'alice', code);
    const again = await firstStep(server, 'alice');
    for (const used of [code, app.code(-1)])
      assert.equal((await secondStep(server, again, used)).status, 401);
    server.world.advance(step);
    assert.equal((await secondStep(server, again, code)).status, 401);
    assert.equal((await secondStep(server, again, app.code())).status, 201);
  });

  test('by a replayed recovery code fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const { recoveryCodes } = await setUpApp(server, alice);
    const [code = '', other = ''] = recoveryCodes;
    await signInTwice(server, 'alice', code.toUpperCase());
    assert.equal((await secondStep(server, await firstStep(server, 'alice'), code)).status, 401);
    const page = await signInTwice(server, 'alice', other);
    const view = (await (await page.send('GET', factors)).json()) as { recovery_codes: number };
    assert.equal(view.recovery_codes, recoveryCodes.length - 2);
  });

  test('by two concurrent requests with one code gets one session', async (t) => {
    const { server, alice } = await withPeople(t);
    const app = await setUpApp(server, alice);
    server.world.advance(step);
    const [one, two] = [await firstStep(server, 'alice'), await firstStep(server, 'alice')];
    const answers = await Promise.all([one, two].map((cookie) => secondStep(server, cookie, app.code())));
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 401]);
  });

  test('by a downgrade to the first step alone opens nothing', async (t) => {
    const { server, alice } = await withPeople(t);
    await setUpApp(server, alice);
    const first = await firstStep(server, 'alice');
    const token = first.slice(first.indexOf('=') + 1);
    for (const cookie of [first, `vault_session=${token}`, `${first}; vault_session=${token}`]) {
      const page = pageWith(server, cookie);
      assert.equal((await page.send('GET', '/api/v1/session')).status, 401);
      assert.equal((await page.send('GET', '/api/v1/certificates')).status, 401);
      assert.equal((await page.send('POST', `${factors}/totp`, { password: goodPassword })).status, 403);
    }
    assert.equal((await server.get('/api/v1/certificates', token)).status, 401);
  });

  test('by fixation fails: a planted first step or session is of no use to its planter', async (t) => {
    const { server, alice } = await withPeople(t);
    const app = await setUpApp(server, alice);
    const bob = await signIn(server, 'bob', otherPassword);
    await setUpApp(server, bob, otherPassword);
    server.world.advance(step);
    // The browser of alice has the first step of bob: her code signs no one in.
    const planted = await firstStep(server, 'bob', otherPassword);
    assert.equal((await secondStep(server, planted, app.code())).status, 401);
    // A session that was there before the sign-in is not taken over.
    const first = await firstStep(server, 'alice');
    const cookie = `${first}; ${bob.cookie}`;
    const done = await secondStep(server, cookie, app.code());
    assert.equal(done.status, 201);
    assert.notEqual(cookieOf(done), bob.cookie);
    assert.equal(((await (await bob.send('GET', '/api/v1/session')).json()) as { name: string }).name, 'bob');
  });

  test('by a first step that was used, has expired, was changed or is missing fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const app = await setUpApp(server, alice);
    server.world.advance(step);
    const first = await firstStep(server, 'alice');
    const [name, token = ''] = first.split('=');
    const changed = `${name}=${token.slice(0, -2)}${token.endsWith('AA') ? 'BB' : 'AA'}`;
    for (const cookie of [undefined, changed, `${name}=x`, `${name}=${'a'.repeat(4000)}`]) {
      assert.equal(await codeOf(await secondStep(server, cookie, app.code())), 'sign_in_expired');
    }
    assert.equal((await secondStep(server, first, app.code())).status, 201);
    server.world.advance(step);
    assert.equal(await codeOf(await secondStep(server, first, app.code())), 'sign_in_expired');
    const late = await firstStep(server, 'alice');
    server.world.advance(5 * minute);
    assert.equal(await codeOf(await secondStep(server, late, app.code())), 'sign_in_expired');
  });

  test('after the password or the factors changed fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const app = await setUpApp(server, alice);
    server.world.advance(step);
    const first = await firstStep(server, 'alice');
    const changed = { current: goodPassword, new: otherPassword };
    assert.equal((await alice.send('PUT', '/api/v1/session/password', changed)).status, 204);
    assert.equal(await codeOf(await secondStep(server, first, app.code())), 'sign_in_expired');
    const next = await firstStep(server, 'alice', otherPassword);
    const passwords = new Passwords(server.world, cheapHash);
    await resetPassword(server.vault, passwords, localCli, {
      name: 'alice',
      password: new Secret(otherPassword),
    });
    assert.equal(await codeOf(await secondStep(server, next, app.code())), 'sign_in_expired');
  });

  test('by brute force is slowed down, and right passwords in between do not help', async (t) => {
    const { server, alice } = await withPeople(t);
    const app = await setUpApp(server, alice);
    const wrong = app.code() === '000000' ? '000001' : '000000';
    for (let n = 0; n < 5; n += 1) {
      assert.equal((await secondStep(server, await firstStep(server, 'alice'), wrong)).status, 401);
    }
    const { status, headers } = await server.get(
      '/api/v1/session',
      undefined,
      fromPage('POST', { name: 'alice', password: goodPassword }),
    );
    assert.deepEqual([status, headers.get('Retry-After')], [429, '1']);
    server.world.advance(second);
    const first = await firstStep(server, 'alice');
    assert.equal((await secondStep(server, first, wrong)).status, 401);
    assert.equal((await secondStep(server, first, app.code())).status, 429);
    const refused = eventsOf(server.dataDir, 'session.refuse');
    assert.deepEqual(refused.at(-1)?.detail, { reason: 'wrong code' });
    assert.equal(refused.at(-1)?.resource, 'administrator:alice');
    server.world.advance(2 * step);
    await signInTwice(server, 'alice', app.code());
  });

  test('by enumeration learns nothing without the password', async (t) => {
    const { server, alice, post } = await withPeople(t);
    await setUpApp(server, alice);
    const answers = [];
    for (const name of ['alice', 'bob', 'unknown']) {
      const response = await post({ name, password: 'wrong' });
      const own = ['date', 'x-request-id'];
      const headers = [...response.headers].filter(([header]) => !own.includes(header));
      answers.push([response.status, headers, await response.text()]);
    }
    assert.deepEqual(answers[1], answers[0]);
    assert.deepEqual(answers[2], answers[0]);
  });

  test('by the database file fails: factors that were removed or added there do not fit', async (t) => {
    const { server, alice, post } = await withPeople(t);
    const { recoveryCodes } = await setUpApp(server, alice);
    const [used = ''] = recoveryCodes;
    const sql = (text: string) => outside(server.dataDir, (db) => db.prepare(text).all());
    const codes = sql('select * from recovery_codes') as { code_hash: Buffer; administrator_id: number }[];
    await signInTwice(server, 'alice', used);
    const [row] = codes;
    assert(row);
    outside(server.dataDir, (db) =>
      db
        .prepare('insert into recovery_codes (administrator_id, code_hash) values (?, ?)')
        .run(row.administrator_id, row.code_hash),
    );
    const credentials = { name: 'alice', password: goodPassword };
    assert.equal((await post(credentials)).status, 401, 'a used code was put back');
    outside(server.dataDir, (db) => db.prepare('delete from recovery_codes').run());
    outside(server.dataDir, (db) => db.prepare('delete from authenticator_apps').run());
    assert.equal((await post(credentials)).status, 401);
    outside(server.dataDir, (db) => db.prepare('update administrators set factors = null').run());
    assert.equal((await post(credentials)).status, 401);
    assert.match(server.log.lines.join(), /modified outside the vault/);
  });
});

suite('an attack on the set-up', () => {
  test('by a stolen session fails without the password', async (t) => {
    const { server, alice } = await withPeople(t);
    const wrong = { password: otherPassword };
    assert.equal((await alice.send('POST', `${factors}/totp`, wrong)).status, 400);
    await setUpApp(server, alice);
    assert.equal((await alice.send('POST', `${factors}/totp/remove`, wrong)).status, 400);
    assert.equal((await alice.send('POST', `${factors}/recovery-codes`, wrong)).status, 400);
    for (const body of [{}, { password: '' }, { password: goodPassword, more: 1 }]) {
      assert.equal((await alice.send('POST', `${factors}/totp`, body)).status, 400);
    }
  });

  test('by the set-up of another person, session or time fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const bob = await signIn(server, 'bob', otherPassword);
    const other = await signIn(server, 'alice');
    const begun = await alice.send('POST', `${factors}/totp`, { password: goodPassword });
    const { pending, secret } = (await begun.json()) as { pending: string; secret: string };
    const code = appOf(server.world.now, secret);
    for (const page of [bob, other]) {
      const response = await page.send('PUT', `${factors}/totp`, { pending, code: code() });
      assert.equal(await codeOf(response), 'sign_in_expired');
    }
    const wrong = code() === '000000' ? '000001' : '000000';
    assert.equal((await alice.send('PUT', `${factors}/totp`, { pending, code: wrong })).status, 400);
    assert.equal((await alice.send('PUT', `${factors}/totp`, { pending, code: code() })).status, 200);
    server.world.advance(step);
    const again = await alice.send('PUT', `${factors}/totp`, { pending, code: code() });
    assert.equal(await codeOf(again), 'sign_in_expired');
    // What permits a second step permits no set-up.
    const [, first = ''] = (await firstStep(server, 'alice')).split('=');
    const mixed = await alice.send('PUT', `${factors}/totp`, { pending: first, code: code() });
    assert.equal(await codeOf(mixed), 'sign_in_expired');
  });

  test('by an API key of any role fails', async (t) => {
    const { server } = await withPeople(t);
    const { raw } = await makeKey(server.vault, { role: 'admin' });
    assert.equal((await server.get(factors, raw)).status, 403);
    const body = JSON.stringify({ password: goodPassword });
    const init = { method: 'POST', body, headers: { 'Content-Type': 'application/json' } };
    assert.equal((await server.get(`${factors}/totp`, raw, init)).status, 403);
  });
});

suite('an authenticator app', () => {
  test('is set up with its first code, ends other sessions, and asks for a code at sign-in', async (t) => {
    const { server, alice, post } = await withPeople(t);
    const other = await signIn(server, 'alice');
    const none = { passkeys: [], totp: null, recovery_codes: 0, passkeys_at: null, required: false };
    assert.deepEqual(await (await alice.send('GET', factors)).json(), none);
    const app = await setUpApp(server, alice);
    assert.equal((await other.send('GET', '/api/v1/session')).status, 401);
    assert.equal((await alice.send('GET', '/api/v1/session')).status, 200);
    const view = (await (await alice.send('GET', factors)).json()) as {
      totp: object;
      recovery_codes: number;
    };
    assert.deepEqual([Object.keys(view.totp), view.recovery_codes], [['created_at', 'last_used_at'], 10]);
    server.world.advance(step);
    const response = await post({ name: 'ALICE', password: goodPassword });
    assert.equal(response.status, 202);
    assert.match(
      response.headers.get('set-cookie') ?? '',
      /^vault_second_step=[\w-]+; Max-Age=300; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    const { methods } = (await response.json()) as { methods: string[] };
    assert.deepEqual(methods, ['totp', 'recovery_code']);
    const code = app.code();
    const done = await secondStep(server, cookieOf(response), `${code.slice(0, 3)} ${code.slice(3)}`);
    assert.equal(done.status, 201);
    const person = (await done.json()) as { name: string; second_factor_needed: boolean };
    assert.deepEqual([person.name, person.second_factor_needed], ['alice', false]);
    const [created] = eventsOf(server.dataDir, 'administrator.totp_create');
    assert.deepEqual(
      [created?.actor, created?.resource, created?.detail],
      ['admin:alice', 'administrator:alice', { replaced: false, recovery_codes: 10 }],
    );
    assert.deepEqual(eventsOf(server.dataDir, 'session.create').at(-1)?.detail, { second_factor: 'totp' });
    const told = server.log.lines.join() + JSON.stringify(eventsOf(server.dataDir, 'session.create'));
    for (const secret of [code, ...app.recoveryCodes]) assert(!told.includes(secret));
  });

  test('is replaced by another, with new recovery codes, and removed', async (t) => {
    const { server, alice } = await withPeople(t);
    const old = await setUpApp(server, alice);
    server.world.advance(step);
    const app = await setUpApp(server, alice);
    server.world.advance(step);
    const first = await firstStep(server, 'alice');
    for (const code of [old.code(), old.recoveryCodes[0] ?? '']) {
      assert.equal((await secondStep(server, first, code)).status, 401);
    }
    await signInTwice(server, 'alice', app.code());
    const password = { password: goodPassword };
    const renewed = await alice.send('POST', `${factors}/recovery-codes`, password);
    assert.equal(renewed.status, 201);
    const { recovery_codes } = (await renewed.json()) as { recovery_codes: string[] };
    assert.equal((await secondStep(server, first, app.recoveryCodes[0] ?? '')).status, 401);
    assert.equal((await secondStep(server, first, recovery_codes[0] ?? '')).status, 201);
    assert.equal((await alice.send('POST', `${factors}/totp/remove`, password)).status, 204);
    assert.equal(
      await codeOf(await alice.send('POST', `${factors}/totp/remove`, password)),
      'second_factor_not_found',
    );
    assert.equal(
      await codeOf(await alice.send('POST', `${factors}/recovery-codes`, password)),
      'second_factor_not_found',
    );
    const rows = outside(server.dataDir, (db) => db.prepare('select * from recovery_codes').all());
    assert.deepEqual(rows, []);
    await signIn(server, 'alice');
  });

  test('of another person is removed by an admin, who keeps their own', async (t) => {
    const { server, alice } = await withPeople(t);
    await makeAdministrator(server.vault, 'olga', goodPassword, 'operator');
    const bob = await signIn(server, 'bob', otherPassword);
    const olga = await signIn(server, 'olga');
    const of = (name: string) => `/api/v1/administrators/${name}/second-factors`;
    assert.equal(await codeOf(await alice.send('DELETE', of('bob'))), 'second_factor_not_found');
    assert.equal(await codeOf(await alice.send('DELETE', of('eve'))), 'administrator_not_found');
    await setUpApp(server, bob, otherPassword);
    const has = async () => {
      const list = (await (await alice.send('GET', '/api/v1/administrators')).json()) as {
        name: string;
        has_second_factor: boolean;
      }[];
      return list.filter(({ has_second_factor }) => has_second_factor).map(({ name }) => name);
    };
    assert.deepEqual(await has(), ['bob']);
    assert.equal((await olga.send('DELETE', of('bob'))).status, 403);
    assert.equal(await codeOf(await bob.send('DELETE', of('bob'))), 'forbidden');
    assert.equal((await alice.send('DELETE', of('BOB'))).status, 204);
    assert.deepEqual(await has(), []);
    assert.equal((await bob.send('GET', '/api/v1/session')).status, 401);
    const [event] = eventsOf(server.dataDir, 'administrator.factors_clear');
    assert.deepEqual(
      [event?.actor, event?.resource, event?.detail],
      [
        'admin:alice',
        'administrator:bob',
        { passkeys: 0, authenticator_apps: 1, recovery_codes: 10, sessions_ended: 1 },
      ],
    );
    await signIn(server, 'bob', otherPassword);
  });
});

suite('a vault that requires a second factor', () => {
  test('lets people with a password do nothing but set one up', async (t) => {
    const { server, alice } = await withPeople(t, { requireSecondFactor: true });
    const session = async () => (await (await alice.send('GET', '/api/v1/session')).json()) as object;
    assert.equal(((await session()) as { second_factor_needed: boolean }).second_factor_needed, true);
    for (const [method, path, body] of [
      ['GET', '/api/v1/certificates'],
      ['GET', '/api/v1/administrators'],
      ['GET', '/api/v1/sessions'],
      ['GET', '/api/v1/whoami'],
      ['GET', '/api/v1/events'],
      ['PUT', '/api/v1/session/password', { current: goodPassword, new: otherPassword }],
      ['DELETE', '/api/v1/administrators/bob'],
      ['POST', `${factors}/recovery-codes`, { password: goodPassword }],
    ] as const) {
      const response = await alice.send(method, path, body);
      assert.equal(await codeOf(response), 'second_factor_required', `${method} ${path}`);
    }
    const [refused] = eventsOf(server.dataDir, 'access.refuse');
    assert.equal(refused?.actor, 'admin:alice');
    const app = await setUpApp(server, alice);
    assert.equal(((await session()) as { second_factor_needed: boolean }).second_factor_needed, false);
    assert.equal((await alice.send('GET', '/api/v1/certificates')).status, 200);
    server.world.advance(step);
    await signInTwice(server, 'alice', app.code());
  });

  test('keeps the last factor of a person', async (t) => {
    const { server, alice } = await withPeople(t, { requireSecondFactor: true });
    await setUpApp(server, alice);
    const removed = await alice.send('POST', `${factors}/totp/remove`, { password: goodPassword });
    assert.equal(await codeOf(removed), 'last_second_factor');
    server.world.advance(step);
    // Another app may take its place.
    await setUpApp(server, alice);
  });

  test('asks neither API keys nor people whose factors an admin cleared for what they cannot have', async (t) => {
    const { server, alice } = await withPeople(t, { requireSecondFactor: true });
    const { raw } = await makeKey(server.vault, { role: 'admin' });
    assert.equal((await server.get('/api/v1/administrators', raw)).status, 200);
    await setUpApp(server, alice);
    const cleared = await server.get('/api/v1/administrators/alice/second-factors', raw, {
      method: 'DELETE',
    });
    assert.equal(cleared.status, 204);
    const again = await signIn(server, 'alice');
    assert.equal(await codeOf(await again.send('GET', '/api/v1/certificates')), 'second_factor_required');
    await setUpApp(server, again);
  });
});
