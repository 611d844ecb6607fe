/**
 * Keys that are bound to networks: they count there, and nowhere else, at every endpoint and in every way of asking.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { hour } from '../../../src/base/duration.ts';
import { revokeApiKey } from '../../../src/domain/access/api-keys.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { ownRows } from '../../harness/database/own-rows.ts';
import { administration } from '../../harness/http/administration.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { administratorEndpoints, guardedEndpoints, openRenewal } from '../../harness/http/credentials.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';

const file = '/api/v1/certificates/www/private.key';

async function prepared(t: Parameters<typeof checkedServer>[0]) {
  const server = await checkedServer(t, { trustedProxies: '127.0.0.1' });
  await makeCertificate(server.vault, 'www');
  const ask = (raw: string, from: string, target = file, more: readonly string[] = [], method = 'GET') =>
    server.raw(method, target, [`Authorization: Bearer ${raw}`, `X-Forwarded-For: ${from}`, ...more]);
  return { server, ask };
}

suite('a key bound to networks', () => {
  test('is accepted from each of its networks and rejected from other addresses', async (t) => {
    const { server, ask } = await prepared(t);
    const allowed_networks = ['192.0.2.0/24', '198.51.100.7', '2001:db8:1::/48'];
    const { raw } = await makeKey(server.vault, { allowed_networks });
    const cases: Readonly<Record<string, number>> = {
      '192.0.2.0': 200,
      '192.0.2.255': 200,
      '::ffff:192.0.2.9': 200,
      '192.0.3.0': 403,
      '198.51.100.7': 200,
      '198.51.100.8': 403,
      '2001:db8:1:ffff::1': 200,
      '2001:db8:2::1': 403,
      '::1': 403,
      unknown: 403,
      '127.0.0.1': 403,
    };
    for (const [from, status] of Object.entries(cases))
      assert.equal((await ask(raw, from)).status, status, from);
  });

  test('gets the same 403 from another address at every endpoint, with an audit event for each', async (t) => {
    const { server, ask } = await prepared(t);
    const key = await makeKey(server.vault, { allowed_networks: ['192.0.2.0/24'] });
    const guarded = guardedEndpoints(await openRenewal(server, 'www'));
    const endpoints = [
      ...guarded.map(({ method, path }) => ({ method, path: path('www') })),
      ...guarded.map(({ method, path }) => ({ method, path: path('absent') })),
      ...administratorEndpoints(1),
      { method: 'GET', path: '/api/v1/session' },
    ];
    const bodies = new Set<string>();
    for (const [index, { method, path }] of endpoints.entries()) {
      // A hundred in an hour are answered alike and recorded one by one; there are more endpoints.
      if (index % 50 === 49) server.world.advance(hour);
      const { status, body } = await ask(key.raw, '198.51.100.7', path, ['If-None-Match: *'], method);
      assert.equal(status, 403, `${method} ${path}`);
      bodies.add(body);
    }
    assert.equal(bodies.size, 1);
    const problem = JSON.parse([...bodies].join());
    assert.equal(problem.code, 'forbidden');
    assert.match(problem.detail, /may not be used from the address 198\.51\.100\.7/);
    assert.deepEqual(
      eventsOf(server.dataDir, 'access.refuse').map(({ actor, resource, detail, ip }) => [
        actor,
        resource,
        detail,
        ip,
      ]),
      endpoints.map(({ method, path }) => [
        key.actor,
        `${method} ${path}`,
        { code: 'forbidden', reason: 'network' },
        '198.51.100.7',
      ]),
    );
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.download'), []);
  });

  test('gets 304 from its networks, but 403 without an ETag from another address, for GET and HEAD', async (t) => {
    const { server, ask } = await prepared(t);
    const { raw } = await makeKey(server.vault, { allowed_networks: ['192.0.2.0/24'] });
    const etag = (await ask(raw, '192.0.2.1')).headers.get('ETag') ?? '';
    const lines = [`If-None-Match: ${etag}`];
    for (const method of ['GET', 'HEAD']) {
      assert.equal((await ask(raw, '192.0.2.1', file, lines, method)).status, 304);
      const refused = await ask(raw, '198.51.100.7', file, lines, method);
      assert.deepEqual([refused.status, refused.headers.get('ETag')], [403, null]);
    }
  });

  test('has its last use unchanged by a request from another address', async (t) => {
    const { server, ask } = await prepared(t);
    const { raw } = await makeKey(server.vault, { allowed_networks: ['192.0.2.0/24'] });
    await ask(raw, '198.51.100.7');
    await server.vault.keyUse.write();
    const used = () =>
      outside(server.dataDir, (db) => db.prepare('select last_used_ip from api_keys').pluck().get());
    assert.equal(used(), null);
    await ask(raw, '192.0.2.1');
    await server.vault.keyUse.write();
    assert.equal(used(), '192.0.2.1');
  });

  test('gets 401 from every address once revoked or expired', async (t) => {
    const { server, ask } = await prepared(t);
    const allowed_networks = ['192.0.2.0/24'];
    const revoked = await makeKey(server.vault, { allowed_networks });
    const expires_at = new Date(server.world.now() + hour).toISOString();
    const expiring = await makeKey(server.vault, { allowed_networks, expires_at });
    for (const { raw } of [revoked, expiring]) assert.equal((await ask(raw, '192.0.2.1')).status, 200);
    await revokeApiKey(server.vault, localCli, revoked.id);
    server.world.advance(hour);
    for (const { raw } of [revoked, expiring])
      for (const from of ['192.0.2.1', '198.51.100.7']) assert.equal((await ask(raw, from)).status, 401);
  });

  test('is authorized by a second request without a query of the API key tables', async (t) => {
    const { server, ask } = await prepared(t);
    const { raw } = await makeKey(server.vault, { allowed_networks: ['192.0.2.0/24'] });
    const target = '/api/v1/certificates/www';
    await ask(raw, '192.0.2.1', target);
    const select = t.mock.method(server.vault.db.reader, 'selectFrom');
    await ask(raw, '192.0.2.1', target);
    const asked = select.mock.calls.filter(({ arguments: [table] }) => String(table).startsWith('api_key'));
    assert.equal(asked.length, 0);
    assert.equal((await ask(raw, '198.51.100.7', target)).status, 403);
  });

  test('is rejected if its stored networks cannot be parsed', async (t) => {
    const { server, ask } = await prepared(t);
    const { raw } = await makeKey(server.vault, { allowed_networks: ['192.0.2.0/24'] });
    outside(server.dataDir, (db) => db.exec(`update api_keys set allowed_networks = '["somewhere"]'`));
    await ownRows(server.vault);
    assert.equal((await ask(raw, '192.0.2.1')).status, 403);
  });
});

suite('networks of a key over HTTP', () => {
  const path = '/api/v1/api-keys';
  const key = { name: 'bound', scopes: ['certificates:read'], certificates: ['*'] };
  type View = { readonly allowed_networks: readonly string[] };

  test('are normalized, deduplicated and recorded', async (t) => {
    const { server, expect } = await administration(t);
    const allowed_networks = [
      '192.0.2.0/24',
      '192.0.2.7/32',
      '::ffff:10.0.0.0/104',
      '2001:DB8::/32',
      '10.0.0.0/8',
    ];
    const expected = ['192.0.2.0/24', '192.0.2.7', '10.0.0.0/8', '2001:db8::/32'];
    const made = await expect<View>(201, 'POST', path, { ...key, allowed_networks });
    assert.deepEqual(made.allowed_networks, expected);
    const [listed] = await expect<View[]>(200, 'GET', path);
    assert.deepEqual(listed?.allowed_networks, expected);
    assert.deepEqual(eventsOf(server.dataDir, 'api_key.create')[0]?.detail.allowed_networks, expected);
  });

  test('are empty if not specified, empty or containing *', async (t) => {
    const { expect } = await administration(t);
    const changes = [{}, { allowed_networks: [] }, { allowed_networks: ['10.0.0.0/8', '*'] }];
    for (const [index, change] of changes.entries()) {
      const body = { ...key, name: `bound ${index}`, ...change };
      assert.deepEqual((await expect<View>(201, 'POST', path, body)).allowed_networks, []);
    }
  });

  test('are rejected with their index if invalid, and no key is created', async (t) => {
    const { expect } = await administration(t);
    type Refusal = { readonly errors: readonly { readonly path: string; readonly message: string }[] };
    for (const wrong of ['10.0.0.1/8', 'localhost', '', 'fe80::1%eth0', '10.0.0.0/33', '10.0.0.0-10.0.0.9']) {
      const body = { ...key, allowed_networks: ['10.0.0.0/8', wrong] };
      const { errors } = await expect<Refusal>(400, 'POST', path, body);
      assert.equal(errors[0]?.path, 'allowed_networks.1', wrong);
      assert.match(
        errors[0]?.message ?? '',
        /is not a network: a network is an IP address such as 192\.0\.2\.7/,
      );
    }
    const many = Array.from({ length: 101 }, (_, index) => `10.0.0.${index}`);
    assert.equal(
      (await expect<Refusal>(400, 'POST', path, { ...key, allowed_networks: many })).errors.length,
      1,
    );
    assert.deepEqual(await expect(200, 'GET', path), []);
  });
});
