/** Machines that exchange an enrollment token over HTTP: who is refused and how, and what key the others get. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { day, second } from '../../../../src/base/duration.ts';
import { failurePace, recordPace, refusalsPerHour } from '../../../../src/domain/access/limits/key-limits.ts';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { deleteCertificate } from '../../../../src/domain/certificates/certificates.ts';
import { deleteEnrollment, revokeEnrollment } from '../../../../src/domain/enrollments/enrollments.ts';
import { outside, refuse } from '../../../harness/database/outside-database.ts';
import { type CheckedServer, checkedServer } from '../../../harness/http/checked.ts';
import { enrollmentsPath, exchange, makeEnrollment } from '../../../harness/http/enrollments.ts';
import { eventsOf, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';

type Key = {
  readonly id: number;
  readonly name: string;
  readonly key: string;
  readonly prefix: string;
  readonly allowed_networks: readonly string[];
};
type Problem = { readonly code: string; readonly detail: string };

const place = `POST ${enrollmentsPath}/exchange`;
const file = '/api/v1/certificates/www/private.key';

async function prepared(t: TestContext) {
  const server = await checkedServer(t, { trustedProxies: '127.0.0.1' });
  await makeCertificate(server.vault, 'www');
  return server;
}

/** How many keys there are, and how often the tokens were used. */
function made({ dataDir }: CheckedServer) {
  return outside(dataDir, (db) => ({
    keys: Number(db.prepare('select count(*) from api_keys').pluck().get()),
    uses: Number(db.prepare('select coalesce(sum(uses), 0) from enrollments').pluck().get()),
  }));
}

const refusalsIn = (server: CheckedServer) =>
  eventsOf(server.dataDir, 'access.refuse').map(({ actor, resource, detail }) => [actor, resource, detail]);

suite('an unknown enrollment token', () => {
  test('gets one and the same 401, whichever way it is wrong', async (t) => {
    const server = await prepared(t);
    const { token } = await makeEnrollment(server.vault);
    const gone = await makeEnrollment(server.vault, { name: 'gone' });
    await revokeEnrollment(server.vault, localCli, gone.id, { api_keys: false });
    await deleteEnrollment(server.vault, localCli, gone.id);
    const key = await makeKey(server.vault);
    const wrong: readonly (string | undefined)[] = [
      undefined,
      'x',
      `ve_${'a'.repeat(12)}.${'b'.repeat(43)}`,
      `${token.slice(0, 16)}${'A'.repeat(43)}`,
      `${token}A`,
      token.replace('ve_', 'vk_'),
      key.raw,
      gone.token,
    ];
    const bodies = new Set<string>();
    for (const raw of wrong) {
      const { status, json } = await exchange(server, raw);
      assert.equal(status, 401, raw ?? 'no header');
      bodies.add(JSON.stringify(json));
    }
    assert.deepEqual(
      [...bodies].map((body) => (JSON.parse(body) as Problem).detail),
      ['A valid enrollment token is required.'],
    );
    assert.deepEqual(made(server), { keys: 1, uses: 0 });
    const [shown] = server.log.lines.filter((line) => line.includes('"level":"error"'));
    assert.equal(shown, undefined);
    for (const raw of wrong) {
      if (raw !== undefined && raw.length > 1) assert(!server.log.lines.join('\n').includes(raw.slice(16)));
    }
  });

  test('gets 429 after too many failures of its address, while a valid token from there still works', async (t) => {
    const server = await prepared(t);
    const { token } = await makeEnrollment(server.vault, { uses: 2 });
    const unknown = `ve_${'a'.repeat(12)}.${'b'.repeat(43)}`;
    for (let n = 0; n < failurePace.burst; n += 1)
      assert.equal((await exchange(server, unknown)).status, 401);
    const { status, headers, json } = await exchange<Problem>(server, unknown);
    assert.deepEqual([status, json.code, headers.get('Retry-After')], [429, 'rate_limited', '1']);
    assert.match(json.detail, /^Too many invalid enrollment tokens from this address/);
    assert.equal((await exchange(server, token, { host: 'a' })).status, 201);
    assert.equal((await exchange(server, unknown, { host: 'a' }, '198.51.100.1')).status, 401);
    server.world.advance(second);
    assert.equal((await exchange(server, unknown)).status, 401);
    assert.deepEqual(refusalsIn(server), [], 'an unknown token is in no event');
  });

  test('opens no other operation', async (t) => {
    const server = await prepared(t);
    const { token } = await makeEnrollment(server.vault);
    assert.equal((await server.get(file, token)).status, 401);
    assert.equal((await server.get('/api/v1/whoami', token)).status, 401);
    assert.equal((await server.get(enrollmentsPath, token)).status, 403);
  });
});

suite('a known enrollment token', () => {
  test('is refused with the reason once it is used up, revoked or expired, or away from its networks', async (t) => {
    const server = await prepared(t);
    const { vault, world } = server;
    const used = await makeEnrollment(vault, { name: 'used' });
    assert.equal((await exchange(server, used.token, { host: 'first' })).status, 201);
    const revoked = await makeEnrollment(vault, { name: 'revoked' });
    await revokeEnrollment(vault, localCli, revoked.id, { api_keys: false });
    const expired = await makeEnrollment(vault, { name: 'expired', expires_at: '2026-11-21T13:00:00Z' });
    const bound = await makeEnrollment(vault, { name: 'bound', allowed_networks: ['198.51.100.0/24'] });
    const meant = await makeEnrollment(vault, { name: 'meant', certificates: ['www'] });
    world.advance(day);
    await deleteCertificate(vault, localCli, 'www', { force: true });
    await makeCertificate(vault, 'www');
    const cases = [
      [used, 409, 'enrollment_inactive', 'Enrollment token 1 is used up: 1 of 1 uses.'],
      [revoked, 409, 'enrollment_inactive', 'Enrollment token 2 is revoked.'],
      [expired, 409, 'enrollment_inactive', 'Enrollment token 3 has expired.'],
      [
        ...([bound, 403, 'forbidden'] as const),
        'This enrollment token may not be used from the address 192.0.2.1.',
      ],
      [
        ...([meant, 409, 'enrollment_inactive'] as const),
        'The certificates of enrollment token 5 were deleted.',
      ],
    ] as const;
    const before = made(server);
    for (const [{ token }, status, code, detail] of cases) {
      const reply = await exchange<Problem>(server, token);
      assert.deepEqual([reply.status, reply.json.code], [status, code]);
      assert.equal(reply.json.detail.split(/ (?:Create another|Its networks)/)[0], detail);
    }
    assert.deepEqual(made(server), before);
    assert.deepEqual(
      refusalsIn(server),
      cases.map(([{ actor }, , code]) => [actor, place, { code }]),
    );
    assert.equal((await exchange(server, bound.token, { host: 'b' }, '198.51.100.7')).status, 201);
  });

  test('is recorded 100 times an hour when refused, then counted, and limited by address', async (t) => {
    const server = await prepared(t);
    const { id, token, actor } = await makeEnrollment(server.vault);
    await revokeEnrollment(server.vault, localCli, id, { api_keys: false });
    for (let n = 0; n < failurePace.burst; n += 1) assert.equal((await exchange(server, token)).status, 409);
    const { status, json } = await exchange<Problem>(server, token);
    assert.equal(status, 429);
    assert.match(json.detail, /^Too many invalid enrollment tokens from this address/);
    assert.equal(refusalsIn(server).length, refusalsPerHour);
    await server.vault.refusals.write('all');
    const last = eventsOf(server.dataDir, 'access.refuse').at(-1);
    assert.deepEqual([last?.actor, last?.resource, last?.detail.count], [actor, `enrollment:${id}`, 1]);
  });

  test('gets 429 for repeated requests that come too often, because each of them is recorded', async (t) => {
    const server = await prepared(t);
    const { id, token, actor } = await makeEnrollment(server.vault);
    const body = { host: 'www1', request: 'repeated-without-an-end' };
    assert.equal((await exchange(server, token, body)).status, 201);
    // Ten thousand requests take a while: they are counted as the server counts them.
    for (let n = 1; n < recordPace.burst; n += 1)
      assert.equal(server.context.keyLimits.exchangeExcessOf(id), undefined);
    const { status, headers, json } = await exchange<Problem>(server, token, body);
    assert.deepEqual([status, headers.get('Retry-After')], [429, '1']);
    assert.match(json.detail, /^Too many requests with this enrollment token/);
    assert.deepEqual(refusalsIn(server), [[actor, place, { code: 'rate_limited' }]]);
    assert.deepEqual(eventsOf(server.dataDir, 'api_key.rotate'), []);
    server.world.advance(second);
    assert.equal((await exchange(server, token, body)).status, 200);
  });

  test('creates no key for a hostile host name or an invalid request, and takes no use', async (t) => {
    const server = await prepared(t);
    const { token } = await makeEnrollment(server.vault);
    const hosts = [
      ...['', ' ', '.', '-rf', '../../etc', 'a b', 'a/b', 'a\nb', 'a\u0000', '\u001b[31m', 'a'.repeat(101)],
      ...['w\u0435b', 'b\u00fccher', '\ud83d\ude00', 'web\u200b', '\u202ebew', '$(id)', '`id`', "a'b", '%s'],
      ...[1, null, ['a'], {}],
    ];
    const bodies: unknown[] = [
      ...hosts.map((host) => ({ host })),
      ...[{}, [], 'null', '{', { host: 'a', role: 'admin' }, { host: 'a', scopes: ['certificates:write'] }],
      ...['short', 'a'.repeat(129), 'spaces are not allowed here', 7].map((request) => ({
        host: 'a',
        request,
      })),
    ];
    for (const body of bodies) {
      const { status, json } = await exchange<Problem>(server, token, body);
      assert.deepEqual([status, json.code], [400, 'invalid_request'], JSON.stringify(body));
    }
    assert.equal((await exchange(server, token, { host: 'a', request: 'r'.repeat(5000) })).status, 413);
    assert.deepEqual(made(server), { keys: 0, uses: 0 });
  });

  test('creates nothing when the audit log takes no event', async (t) => {
    const server = await prepared(t);
    const { token } = await makeEnrollment(server.vault);
    const refused = refuse(server.dataDir, 'insert', 'audit_events');
    const { status } = await exchange(server, token);
    refused.allow();
    assert(status >= 500, `${status}`);
    assert.deepEqual(made(server), { keys: 0, uses: 0 });
    assert.equal((await exchange(server, token)).status, 201);
  });
});

suite('the key of a machine', () => {
  test('has the name of the host and exactly the rights of the enrollment, and works immediately', async (t) => {
    const server = await prepared(t);
    await makeCertificate(server.vault, 'other');
    const { id, token, actor } = await makeEnrollment(server.vault, {
      ...{ certificates: ['www'], certificate_labels: ['team=web'], labels: ['site=a'] },
      ...{ allowed_networks: ['192.0.2.0/24'], key_expires_at: '2028-01-01T00:00:00Z' },
    });
    const { status, headers, json } = await exchange<Key>(server, token, { host: 'www1.example.test' });
    assert.deepEqual([status, headers.get('Cache-Control')], [201, 'no-store']);
    const { key, prefix, ...view } = json;
    assert.equal(key.slice(0, 15), prefix);
    assert.deepEqual(view, {
      id: 1,
      name: 'www1.example.test',
      scopes: ['certificates:read', 'private_keys:read'],
      ...{ certificates: ['www'], certificate_labels: ['team=web'], labels: ['site=a'] },
      ...{
        allowed_networks: ['192.0.2.0/24'],
        profiles: [],
        role: null,
        reach: [],
        client_certificate: null,
      },
      ...{ created_at: '2026-11-21T12:00:00Z', expires_at: '2028-01-01T00:00:00Z', revoked_at: null },
      ...{ last_used_at: null, last_used_ip: null, state: 'active' },
      ...{ previous_prefix: null, previous_expires_at: null, enrollment: id },
    });
    const from = (address: string, target: string) =>
      server.get(target, key, { headers: { 'X-Forwarded-For': address } }).then((reply) => reply.status);
    assert.equal(await from('192.0.2.200', file), 200);
    assert.equal(await from('198.51.100.1', file), 403);
    assert.equal(await from('192.0.2.200', '/api/v1/certificates/other/private.key'), 403);
    const [event] = eventsOf(server.dataDir, 'enrollment.exchange');
    const requestId = headers.get('X-Request-Id');
    assert.deepEqual(event, {
      ...{ actor, action: 'enrollment.exchange', resource: `enrollment:${id}`, ip: '192.0.2.1' },
      request_id: requestId,
      detail: {
        ...{ name: 'rack', api_key: 1, key_name: 'www1.example.test', host: 'www1.example.test' },
        ...{ uses: 1, max_uses: 1 },
      },
    });
    const [created] = eventsOf(server.dataDir, 'api_key.create');
    assert.deepEqual(
      [created?.actor, created?.request_id, created?.detail.enrollment],
      [actor, requestId, id],
    );
    assert(
      server.log.lines.some((line) => line.includes(`"${requestId}"`) && line.includes(`"${actor}"`)),
      'the request is in the log with the enrollment as its actor',
    );
  });

  for (const [address, network] of [
    ['192.0.2.7', '192.0.2.7'],
    ['2001:db8::7', '2001:db8::7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
  ] as const) {
    test(`is bound to the address ${address} that it was created from, if the enrollment says so`, async (t) => {
      const server = await prepared(t);
      const { token } = await makeEnrollment(server.vault, {
        ...{ bind_address: true, allowed_networks: ['192.0.2.0/24', '2001:db8::/32'] },
      });
      const { json } = await exchange<Key>(server, token, { host: 'www1' }, address);
      assert.deepEqual(json.allowed_networks, [network]);
      const from = async (other: string) =>
        (await server.get(file, json.key, { headers: { 'X-Forwarded-For': other } })).status;
      assert.deepEqual([await from(address), await from('192.0.2.8')], [200, 403]);
    });
  }

  test('gets a number in its name if another key is named like the host, also in another case', async (t) => {
    const server = await prepared(t);
    const { vault } = server;
    await makeKey(vault, { name: 'WWW1' });
    const { id, token } = await makeEnrollment(vault, { uses: 4 });
    const names: string[] = [];
    const enroll = async (raw: string, host: string) =>
      names.push((await exchange<Key>(server, raw, { host })).json.name);
    await enroll(token, 'www1');
    await enroll(token, 'www1');
    await makeKey(vault, { name: 'db-3' });
    await makeKey(vault, { name: 'db' });
    await enroll(token, 'db');
    await enroll(token, 'a'.repeat(100));
    assert.deepEqual(names, ['www1-1', 'www1-2', `db-${id}-3`, 'a'.repeat(100)]);
  });
});

suite('parallel exchanges of one token', () => {
  test('create exactly as many keys as the token has uses', async (t) => {
    const server = await prepared(t);
    const { token } = await makeEnrollment(server.vault, { uses: 5 });
    const replies = await Promise.all(Array.from({ length: 12 }, () => exchange<Key>(server, token)));
    const created = replies.filter(({ status }) => status === 201);
    assert.equal(created.length, 5);
    assert.deepEqual(
      new Set(replies.filter(({ status }) => status !== 201).map(({ status }) => status)),
      new Set([409]),
    );
    assert.deepEqual(created.map(({ json }) => json.name).toSorted(), [
      'www1',
      'www1-2',
      'www1-3',
      'www1-4',
      'www1-5',
    ]);
    for (const { json } of created) assert.equal((await server.get(file, json.key)).status, 200);
    assert.deepEqual(made(server), { keys: 5, uses: 5 });
  });

  test('with the text of one request share a key, of which only the last secret works', async (t) => {
    const server = await prepared(t);
    const { token } = await makeEnrollment(server.vault, { uses: 5 });
    const body = { host: 'www1', request: 'the-same-in-each-of-them' };
    const replies = await Promise.all(Array.from({ length: 6 }, () => exchange<Key>(server, token, body)));
    assert.deepEqual(replies.map(({ status }) => status).toSorted(), [200, 200, 200, 200, 200, 201]);
    assert.deepEqual(made(server), { keys: 1, uses: 1 });
    const working = [];
    for (const { json } of replies) {
      if ((await server.get(file, json.key)).status === 200) working.push(json.key);
    }
    assert.equal(working.length, 1);
  });
});

suite('a machine that lost the response', () => {
  const body = { host: 'www1', request: 'a-text-of-its-own-choice' };

  test('gets a new secret of the same key with its request text, also after the last use', async (t) => {
    const server = await prepared(t);
    const { token, actor } = await makeEnrollment(server.vault, { bind_address: true });
    const lost = await exchange<Key>(server, token, body);
    // From another address and with another name: a key stays what it is.
    const again = await exchange<Key>(server, token, { ...body, host: 'other' }, '192.0.2.9');
    assert.deepEqual([lost.status, again.status], [201, 200]);
    assert.deepEqual(
      [again.json.id, again.json.name, again.json.allowed_networks],
      [lost.json.id, 'www1', ['192.0.2.1']],
    );
    const from = async (key: string) =>
      (await server.get(file, key, { headers: { 'X-Forwarded-For': '192.0.2.1' } })).status;
    assert.deepEqual([await from(lost.json.key), await from(again.json.key)], [401, 200]);
    assert.deepEqual(made(server), { keys: 1, uses: 1 });
    const [event] = eventsOf(server.dataDir, 'api_key.rotate');
    assert.deepEqual([event?.actor, event?.resource], [actor, `api-key:${lost.json.id}`]);
    assert.equal(eventsOf(server.dataDir, 'enrollment.exchange').length, 1);
    assert.equal((await exchange(server, token, { host: 'www1' })).status, 409, 'a request of its own');
  });

  test('gets no secret when the key or the token is revoked, or the token has expired', async (t) => {
    const server = await prepared(t);
    const { vault, world } = server;
    const one = await makeEnrollment(vault, { uses: 2 });
    await exchange(server, one.token, body);
    const admin = await makeKey(vault, { name: 'admin', role: 'admin' });
    assert.equal((await server.get('/api/v1/api-keys/1/revoke', admin.raw, { method: 'POST' })).status, 200);
    const { status, json } = await exchange<Problem>(server, one.token, body);
    assert.deepEqual([status, json.code], [409, 'api_key_inactive']);
    const revoked = await makeEnrollment(vault, { name: 'revoked' });
    assert.equal((await exchange(server, revoked.token, body)).status, 201, 'the text of another token');
    await revokeEnrollment(vault, localCli, revoked.id, { api_keys: false });
    const expired = await makeEnrollment(vault, { name: 'expired', expires_at: '2026-11-22T00:00:00Z' });
    await exchange(server, expired.token, body);
    world.advance(day);
    for (const { token } of [revoked, expired]) {
      const refused = await exchange<Problem>(server, token, body);
      assert.deepEqual([refused.status, refused.json.code], [409, 'enrollment_inactive']);
    }
    assert.deepEqual(eventsOf(server.dataDir, 'api_key.rotate'), []);
  });
});
