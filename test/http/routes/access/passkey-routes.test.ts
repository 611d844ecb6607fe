/** Passkeys over HTTP: registration, sign-in without a name, and attacks on both. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { minute, second } from '../../../../src/base/duration.ts';
import { outside } from '../../../harness/database/outside-database.ts';
import { type CheckedServer, checkedServer, codeOf } from '../../../harness/http/checked.ts';
import { eventsOf } from '../../../harness/http/fixtures.ts';
import { factors, firstStep, secondStep, setUpApp } from '../../../harness/http/second-factors.ts';
import {
  cookieOf,
  fromPage,
  goodPassword,
  makeAdministrator,
  otherPassword,
  type Page,
  pageWith,
  signIn,
} from '../../../harness/http/sign-in-fixtures.ts';
import { type Deviations, SoftwareAuthenticator } from '../../../harness/http/software-authenticator.ts';

const publicUrl = 'https://vault.example.test';
const passkeys = `${factors}/passkeys`;

type Begun = { pending: string; options: Parameters<SoftwareAuthenticator['create']>[0] };

async function withPeople(t: TestContext, options: Parameters<typeof checkedServer>[1] = {}) {
  const server = await checkedServer(t, { publicUrl, ...options });
  await makeAdministrator(server.vault, 'alice');
  await makeAdministrator(server.vault, 'bob', otherPassword);
  return { server, alice: await signIn(server, 'alice') };
}

async function begin(page: Page, password = goodPassword): Promise<Begun> {
  const response = await page.send('POST', `${passkeys}/options`, { password });
  assert.equal(response.status, 201, await response.clone().text());
  return (await response.json()) as Begun;
}

async function register(page: Page, name = 'laptop', password = goodPassword) {
  const authenticator = new SoftwareAuthenticator(publicUrl);
  const { pending, options } = await begin(page, password);
  const response = await page.send('POST', passkeys, {
    pending,
    name,
    response: authenticator.create(options),
  });
  assert.equal(response.status, 201, await response.clone().text());
  return { authenticator, id: ((await response.json()) as { id: number }).id };
}

type Challenge = { cookie: string; options: Parameters<SoftwareAuthenticator['get']>[0] };

async function challenge({ get }: CheckedServer): Promise<Challenge> {
  const response = await get('/api/v1/session/passkey/options', undefined, fromPage('POST'));
  assert.equal(response.status, 201);
  const { options } = (await response.json()) as Pick<Challenge, 'options'>;
  return { cookie: cookieOf(response), options };
}

const answer = ({ get }: CheckedServer, cookie: string | undefined, body: unknown) =>
  get('/api/v1/session/passkey', undefined, fromPage('POST', body, cookie));

async function use(server: CheckedServer, authenticator: SoftwareAuthenticator, deviations?: Deviations) {
  const { cookie, options } = await challenge(server);
  return answer(server, cookie, authenticator.get(options, deviations));
}

const reasons = (server: CheckedServer) =>
  eventsOf(server.dataDir, 'session.refuse').map(({ detail }) => detail.reason);

suite('an attack on a sign-in by passkey', () => {
  test('by a replayed assertion fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const { authenticator } = await register(alice);
    const { cookie, options } = await challenge(server);
    const assertion = authenticator.get(options);
    assert.equal((await answer(server, cookie, assertion)).status, 201);
    assert.equal(await codeOf(await answer(server, cookie, assertion)), 'sign_in_expired');
    const { cookie: next } = await challenge(server);
    assert.equal((await answer(server, next, assertion)).status, 401);
  });

  test('by two concurrent uses of one assertion gets one session', async (t) => {
    const { server, alice } = await withPeople(t);
    const { authenticator } = await register(alice);
    const { cookie, options } = await challenge(server);
    const assertion = authenticator.get(options);
    const answers = await Promise.all([1, 2].map(() => answer(server, cookie, assertion)));
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 409]);
  });

  test('by a challenge of another browser, purpose or time fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const { authenticator } = await register(alice);
    const { cookie, options } = await challenge(server);
    const other = await challenge(server);
    assert.equal((await answer(server, other.cookie, authenticator.get(options))).status, 401);
    const { pending, options: creation } = await begin(alice);
    const registration = authenticator.get({ rpId: creation.rp.id, challenge: creation.challenge });
    const [name] = cookie.split('=');
    assert.equal(await codeOf(await answer(server, `${name}=${pending}`, registration)), 'sign_in_expired');
    for (const missing of [undefined, `${name}=x`]) {
      const response = await answer(server, missing, authenticator.get(options));
      assert.equal(await codeOf(response), 'sign_in_expired');
    }
    server.world.advance(5 * minute);
    assert.equal(await codeOf(await answer(server, cookie, authenticator.get(options))), 'sign_in_expired');
  });

  test('from another origin fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const { authenticator } = await register(alice);
    for (const origin of [
      'https://vault.example.test.evil.test',
      'https://evil.test',
      'http://vault.example.test',
      'https://vault.example.test:444',
      'null',
    ]) {
      assert.equal((await use(server, authenticator, { origin })).status, 401, origin);
    }
    assert.equal((await use(server, authenticator, { rpId: 'evil.test' })).status, 401);
    const { cookie, options } = await challenge(server);
    const init = fromPage('POST', authenticator.get(options), cookie);
    const headers = { ...init.headers, 'Sec-Fetch-Site': 'cross-site' };
    const crossSite = await server.get('/api/v1/session/passkey', undefined, { ...init, headers });
    assert.equal(await codeOf(crossSite), 'forbidden');
  });

  test('without user verification fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const { authenticator } = await register(alice);
    assert.equal((await use(server, authenticator, { isUserVerified: false })).status, 401);
    const { cookie, options } = await challenge(server);
    // The flag is part of what is signed.
    const assertion = authenticator.get(options, { isUserVerified: false });
    const data = Buffer.from(assertion.response.authenticatorData, 'base64url');
    data[32] = 0x05;
    const forged = { ...assertion.response, authenticatorData: data.toString('base64url') };
    assert.equal((await answer(server, cookie, { ...assertion, response: forged })).status, 401);
  });

  test('by a signature counter that does not grow fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const { authenticator } = await register(alice);
    assert.equal((await use(server, authenticator, { count: 7 })).status, 201);
    for (const count of [7, 6, 0]) assert.equal((await use(server, authenticator, { count })).status, 401);
    assert.equal((await use(server, authenticator, { count: 8 })).status, 201);
  });

  test('by a removed passkey fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const { authenticator, id } = await register(alice);
    const { cookie, options } = await challenge(server);
    const removed = await alice.send('POST', `${passkeys}/${id}/remove`, { password: goodPassword });
    assert.equal(removed.status, 204);
    assert.equal((await answer(server, cookie, authenticator.get(options))).status, 401);
    assert.deepEqual(reasons(server), ['unknown passkey']);
  });

  test('by the passkey of another person fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const bob = await signIn(server, 'bob', otherPassword);
    const { authenticator } = await register(alice);
    const other = await register(bob, 'phone', otherPassword);
    const { cookie, options } = await challenge(server);
    // Signed with the key of bob under the id of alice, and the other way round.
    const { id, rawId } = authenticator.get(options);
    const mixed = { ...other.authenticator.get(options), id, rawId };
    assert.equal((await answer(server, cookie, mixed)).status, 401);
    const { userHandle } = authenticator.get(options).response;
    assert.equal((await use(server, other.authenticator, { userHandle })).status, 401);
    assert.deepEqual(reasons(server), ['passkey of another person', 'passkey of another person']);
  });

  test('by enumeration learns nothing: all passkeys that are not accepted get the same response', async (t) => {
    const { server, alice } = await withPeople(t);
    const { authenticator } = await register(alice);
    const stranger = new SoftwareAuthenticator(publicUrl);
    const answers = [];
    for (const response of [
      await use(server, stranger, { userHandle: 'AAAA' }),
      await use(server, authenticator, { origin: 'https://evil.test' }),
      await use(server, authenticator, { userHandle: 'AAAA' }),
    ]) {
      const own = ['date', 'x-request-id'];
      const headers = [...response.headers].filter(([header]) => !own.includes(header));
      answers.push([response.status, headers, await response.text()]);
    }
    assert.equal(answers[0]?.[0], 401);
    for (const one of answers) assert.deepEqual(one, answers[0]);
    const { options } = await challenge(server);
    assert.deepEqual((options as { allowCredentials?: unknown }).allowCredentials ?? [], []);
  });

  test('by brute force is slowed down by address', async (t) => {
    const { server, alice } = await withPeople(t);
    const { authenticator } = await register(alice);
    const statuses = [];
    for (let n = 0; n < 21; n += 1) statuses.push((await use(server, authenticator, { type: 'x' })).status);
    assert.deepEqual(statuses, [...Array(20).fill(401), 429]);
    server.world.advance(2 * second);
    assert.equal((await use(server, authenticator)).status, 201);
  });

  test('by the database file fails: a passkey that was added or replaced there does not fit', async (t) => {
    const { server, alice } = await withPeople(t);
    const { authenticator } = await register(alice);
    const bob = await signIn(server, 'bob', otherPassword);
    const other = await register(bob, 'phone', otherPassword);
    const sql = (text: string) => outside(server.dataDir, (db) => db.prepare(text).run());
    sql('update passkeys set administrator_id = 1 where administrator_id = 2');
    for (const known of [authenticator, other.authenticator])
      assert.equal((await use(server, known)).status, 401);
    const credentials = { name: 'alice', password: goodPassword };
    const response = await server.get('/api/v1/session', undefined, fromPage('POST', credentials));
    assert.equal(response.status, 401);
  });
});

suite('an attack on the registration of a passkey', () => {
  test('by a stolen session fails without the password', async (t) => {
    const { alice } = await withPeople(t);
    const { id } = await register(alice);
    const wrong = { password: otherPassword };
    assert.equal((await alice.send('POST', `${passkeys}/options`, wrong)).status, 400);
    assert.equal((await alice.send('POST', `${passkeys}/${id}/remove`, wrong)).status, 400);
  });

  test('by a challenge of another person, session, use or time fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const bob = await signIn(server, 'bob', otherPassword);
    const { pending, options } = await begin(alice);
    const body = (authenticator: SoftwareAuthenticator) => ({
      ...{ pending, name: 'x' },
      response: authenticator.create(options),
    });
    const authenticator = new SoftwareAuthenticator(publicUrl);
    assert.equal(await codeOf(await bob.send('POST', passkeys, body(authenticator))), 'sign_in_expired');
    assert.equal((await alice.send('POST', passkeys, body(authenticator))).status, 201);
    const again = await alice.send('POST', passkeys, body(new SoftwareAuthenticator(publicUrl)));
    assert.equal(await codeOf(again), 'sign_in_expired');
    const late = await begin(alice);
    server.world.advance(5 * minute);
    const response = new SoftwareAuthenticator(publicUrl).create(late.options);
    const expired = await alice.send('POST', passkeys, { pending: late.pending, name: 'x', response });
    assert.equal(await codeOf(expired), 'sign_in_expired');
  });

  test('from another origin, without user verification or with an attestation fails', async (t) => {
    const { alice } = await withPeople(t);
    // {"x5c": [h'00']}: its certificates could name a URL of a revocation list.
    const statement = Buffer.from('a163783563814100', 'hex');
    for (const deviations of [
      { origin: 'https://evil.test' },
      { rpId: 'evil.test' },
      { isUserVerified: false },
      { challenge: 'AAAA' },
      { type: 'webauthn.get' },
      { attestation: { format: 'packed', statement } },
      { attestation: { format: 'fido-u2f', statement } },
      { attestation: { format: 'android-safetynet', statement: Buffer.of(0xa0) } },
    ] satisfies Deviations[]) {
      const { pending, options } = await begin(alice);
      const response = new SoftwareAuthenticator(publicUrl).create(options, deviations);
      const answered = await alice.send('POST', passkeys, { pending, name: 'x', response });
      assert.equal(answered.status, 400, JSON.stringify(deviations));
    }
    const { pending, options } = await begin(alice);
    const response = new SoftwareAuthenticator(publicUrl).create(options);
    for (const attestationObject of ['AAAA', '_____w', 'oA', 'a'.repeat(16_000)]) {
      const garbage = { ...response, response: { ...response.response, attestationObject } };
      const answered = await alice.send('POST', passkeys, { pending, name: 'x', response: garbage });
      assert.equal(answered.status, 400);
    }
  });

  test('by the credential id of another passkey fails', async (t) => {
    const { server, alice } = await withPeople(t);
    const { authenticator } = await register(alice);
    const bob = await signIn(server, 'bob', otherPassword);
    const { pending, options } = await begin(bob, otherPassword);
    const stolen = { pending, name: 'x', response: authenticator.create(options) };
    assert.equal(await codeOf(await bob.send('POST', passkeys, stolen)), 'passkey_exists');
  });
});

suite('a passkey', () => {
  test('signs in without a name and without a second step, and the password alone does no more', async (t) => {
    const { server, alice } = await withPeople(t);
    const methods = async () =>
      ((await (await server.get('/api/v1/sign-in-methods')).json()) as { passkeys: unknown }).passkeys;
    assert.equal(await methods(), null);
    const { authenticator, id } = await register(alice);
    assert.deepEqual(await methods(), { public_url: publicUrl });
    const response = await use(server, authenticator);
    assert.equal(response.status, 201);
    assert.equal(((await response.json()) as { name: string }).name, 'alice');
    const page = pageWith(server, cookieOf(response));
    assert.equal((await page.send('GET', '/api/v1/certificates')).status, 200);
    assert.deepEqual(eventsOf(server.dataDir, 'session.create').at(-1)?.detail, { second_factor: 'passkey' });
    assert.deepEqual(eventsOf(server.dataDir, 'administrator.passkey_create')[0]?.detail, {
      id,
      name: 'laptop',
    });
    const password = await server.get(
      '/api/v1/session',
      undefined,
      fromPage('POST', { name: 'alice', password: goodPassword }),
    );
    assert.equal(password.status, 202);
    assert.deepEqual(((await password.json()) as { methods: string[] }).methods, ['passkey']);
    assert.equal((await secondStep(server, cookieOf(password), '000000')).status, 401);
  });

  test('is one of several, has a name that can change, and is removed', async (t) => {
    const { server, alice } = await withPeople(t);
    const bob = await signIn(server, 'bob', otherPassword);
    const one = await register(alice, 'laptop');
    const two = await register(alice, 'key ring');
    const { options } = await begin(alice);
    const { excludeCredentials } = options as { excludeCredentials?: { id: string }[] };
    assert.deepEqual(
      excludeCredentials?.map(({ id }) => id),
      [one.authenticator.id, two.authenticator.id],
    );
    assert.equal((await bob.send('PATCH', `${passkeys}/${one.id}`, { name: 'mine' })).status, 404);
    const removal = { password: otherPassword };
    assert.equal((await bob.send('POST', `${passkeys}/${one.id}/remove`, removal)).status, 404);
    assert.equal((await alice.send('PATCH', `${passkeys}/${one.id}`, { name: ' desk ' })).status, 200);
    assert.equal((await alice.send('PATCH', `${passkeys}/${one.id}`, { name: '' })).status, 400);
    assert.equal((await alice.send('PATCH', `${passkeys}/x`, { name: 'y' })).status, 404);
    const view = async () =>
      (await (await alice.send('GET', factors)).json()) as {
        passkeys: { name: string; last_used_at: string | null }[];
        passkeys_at: string;
      };
    assert.equal((await use(server, one.authenticator)).status, 201);
    const { passkeys: list, passkeys_at } = await view();
    assert.deepEqual(
      list.map(({ name, last_used_at }) => [name, last_used_at !== null]),
      [
        ['desk', true],
        ['key ring', false],
      ],
    );
    assert.equal(passkeys_at, publicUrl);
    const password = { password: goodPassword };
    assert.equal((await alice.send('POST', `${passkeys}/${one.id}/remove`, password)).status, 204);
    assert.equal((await use(server, two.authenticator)).status, 201);
    assert.equal((await alice.send('POST', `${passkeys}/${two.id}/remove`, password)).status, 204);
    await signIn(server, 'alice');
    const actions = ['passkey_create', 'passkey_update', 'passkey_delete'].map(
      (action) => eventsOf(server.dataDir, `administrator.${action}`).length,
    );
    assert.deepEqual(actions, [2, 1, 2]);
  });

  test('has recovery codes and stands beside an authenticator app', async (t) => {
    const { server, alice } = await withPeople(t);
    const { id } = await register(alice);
    const renewed = await alice.send('POST', `${factors}/recovery-codes`, { password: goodPassword });
    const { recovery_codes } = (await renewed.json()) as { recovery_codes: string[] };
    const first = await firstStep(server, 'alice');
    assert.equal((await secondStep(server, first, recovery_codes[0] ?? '')).status, 201);
    const app = await setUpApp(server, alice);
    const removed = await alice.send('POST', `${passkeys}/${id}/remove`, { password: goodPassword });
    assert.equal(removed.status, 204);
    server.world.advance(30 * second);
    assert.equal((await secondStep(server, await firstStep(server, 'alice'), app.code())).status, 201);
  });

  test('is enough where a second factor is required, and the last one stays', async (t) => {
    const { server, alice } = await withPeople(t, { requireSecondFactor: true });
    assert.equal(await codeOf(await alice.send('GET', '/api/v1/certificates')), 'second_factor_required');
    const { authenticator, id } = await register(alice);
    assert.equal((await alice.send('GET', '/api/v1/certificates')).status, 200);
    assert.equal((await use(server, authenticator)).status, 201);
    const removed = await alice.send('POST', `${passkeys}/${id}/remove`, { password: goodPassword });
    assert.equal(await codeOf(removed), 'last_second_factor');
  });

  test('needs a public URL with a domain name, by HTTPS or at localhost', async (t) => {
    for (const [url, works] of [
      [undefined, false],
      ['http://vault.example.test', false],
      ['https://192.0.2.7', false],
      ['https://[2001:db8::1]', false],
      ['http://localhost:8080', true],
      ['https://vault.example.test:8443', true],
    ] as const) {
      const server = await checkedServer(t, { ...(url !== undefined && { publicUrl: url }) });
      const response = await server.get('/api/v1/session/passkey/options', undefined, fromPage('POST'));
      assert.equal(response.status, works ? 201 : 404, String(url));
    }
  });
});
