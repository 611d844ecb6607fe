/**
 * How often keys may fail and be used: who goes too far is told when to come again, and a key that counts is never kept
 * out.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { hour, minute, second } from '../../../src/base/duration.ts';
import {
  failurePace,
  pagePace,
  recordPace,
  refusalsPerHour,
} from '../../../src/domain/access/limits/key-limits.ts';
import { alice } from '../../harness/http/acme-fixtures.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { administratorEndpoints, revokedKey } from '../../harness/http/credentials.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { settingsFor } from '../../harness/test-vault.ts';

const file = '/api/v1/certificates/www/certificate.crt';
const unknown = `vk_${'a'.repeat(12)}.${'b'.repeat(43)}`;

async function prepared(
  t: Parameters<typeof checkedServer>[0],
  options: Parameters<typeof checkedServer>[1] = {},
) {
  const server = await checkedServer(t, { trustedProxies: '127.0.0.1', ...options });
  await makeCertificate(server.vault, 'www');
  const ask = (key: string, from = '192.0.2.1', target = file, more: readonly string[] = []) =>
    server.raw('GET', target, [`Authorization: Bearer ${key}`, `X-Forwarded-For: ${from}`, ...more]);
  const exhaust = async (key: string, from = '192.0.2.1') => {
    for (let count = 0; count < failurePace.burst; count += 1)
      assert.notEqual((await ask(key, from)).status, 429);
  };
  const refusals = () => eventsOf(server.dataDir, 'access.refuse');
  return { server, ask, exhaust, refusals };
}

suite('invalid API keys', () => {
  test('get 429 after too many failures, with a Retry-After that suffices', async (t) => {
    const { server, ask, exhaust } = await prepared(t);
    await exhaust(unknown);
    const refused = await ask(unknown);
    assert.equal(refused.status, 429);
    const problem = JSON.parse(refused.body);
    assert.equal(problem.code, 'rate_limited');
    assert.match(problem.detail, /Too many invalid API keys from this address/);
    assert.equal(refused.headers.get('Retry-After'), '1');
    assert.match(refused.headers.get('X-Request-Id') ?? '', /./);
    server.world.advance(second);
    assert.deepEqual([(await ask(unknown)).status, (await ask(unknown)).status], [401, 429]);
    server.world.advance(10 * minute);
    assert.equal((await ask(unknown)).status, 401);
  });

  test('do not block a valid key from the same address', async (t) => {
    const { server, ask, exhaust } = await prepared(t);
    const { raw } = await makeKey(server.vault);
    await exhaust(unknown);
    for (let count = 0; count < 20; count += 1) {
      assert.equal((await ask(unknown)).status, 429);
      assert.equal((await ask(raw)).status, 200);
    }
    const wrong = `${raw.slice(0, 16)}${'A'.repeat(43)}`;
    assert.equal((await ask(wrong)).status, 429);
    assert.equal((await ask(raw)).status, 200, 'even while this key is being guessed');
  });

  test('are counted by IPv4 address and by the first 64 bits of an IPv6 address', async (t) => {
    const { ask, exhaust } = await prepared(t);
    await exhaust(unknown, '192.0.2.1');
    assert.equal((await ask(unknown, '192.0.2.1')).status, 429);
    assert.equal((await ask(unknown, '192.0.2.2')).status, 401);
    await exhaust(unknown, '2001:db8:1:2::1');
    assert.equal((await ask(unknown, '2001:db8:1:2:ffff::9')).status, 429);
    assert.equal((await ask(unknown, '2001:db8:1:3::1')).status, 401);
  });

  test('get 429 at administrator endpoints too after too many failures', async (t) => {
    const { ask, exhaust } = await prepared(t);
    await exhaust(unknown);
    for (const { method, path } of administratorEndpoints(1)) {
      if (method === 'GET') assert.equal((await ask(unknown, '192.0.2.1', path)).status, 429, path);
    }
  });

  test('requests without a key do not count as failed attempts', async (t) => {
    const { server } = await prepared(t);
    for (let count = 0; count < failurePace.burst + 20; count += 1)
      assert.equal((await server.raw('GET', file)).status, 401);
  });

  test('revoked keys and keys from another network are each recorded, even after too many failures of the address', async (t) => {
    const { server, ask, exhaust, refusals } = await prepared(t);
    const revoked = await revokedKey(server);
    const bound = await makeKey(server.vault, { allowed_networks: ['198.51.100.0/24'] });
    await exhaust(unknown);
    const { status } = await ask(revoked.raw);
    assert.equal(status, 429, 'the response does not reveal that it was a key');
    assert.equal((await ask(bound.raw)).status, 429);
    assert.deepEqual(
      refusals().map(({ actor, detail }) => [actor, detail]),
      [
        [revoked.actor, { code: 'unauthenticated', reason: 'revoked' }],
        [bound.actor, { code: 'forbidden', reason: 'network' }],
      ],
    );
    assert.equal((await ask(bound.raw, '198.51.100.1')).status, 200);
  });

  test('a revoked key is recorded for each 401 up to an hourly limit and then counted, and not recorded for 429', async (t) => {
    const { server, ask, exhaust, refusals } = await prepared(t);
    const revoked = await revokedKey(server);
    await exhaust(revoked.raw);
    for (let count = 0; count < 50; count += 1) assert.equal((await ask(revoked.raw)).status, 429);
    assert.equal(refusals().length, failurePace.burst);
    server.world.advance(second);
    assert.equal((await ask(revoked.raw)).status, 401);
    assert.equal(
      refusals().length,
      failurePace.burst,
      'those after the first hundred of an hour are counted',
    );
    await server.vault.refusals.write('all');
    assert.equal(refusals().at(-1)?.detail.count, 1);
  });
});

suite('the request limit of an API key', () => {
  test('is disabled by a rate of 0', async (t) => {
    const { server, ask } = await prepared(t, { apiKeyRate: 0 });
    const { raw } = await makeKey(server.vault);
    for (let count = 0; count < 300; count += 1) assert.equal((await ask(raw)).status, 200);
  });

  test('counts each key separately, from any address and for all requests', async (t) => {
    const { server, ask } = await prepared(t, { apiKeyRate: 10 });
    const [one, other] = [await makeKey(server.vault), await makeKey(server.vault)];
    const etag = (await ask(one.raw)).headers.get('ETag') ?? '';
    for (let count = 0; count < 8; count += 1)
      await ask(one.raw, `192.0.2.${count}`, file, [`If-None-Match: ${etag}`]);
    assert.equal((await ask(one.raw, '192.0.2.1', '/api/v1/certificates')).status, 200);
    const refused = await ask(one.raw, '203.0.113.9');
    assert.deepEqual([refused.status, refused.headers.get('Retry-After')], [429, '6']);
    assert.match(refused.body, /Too many requests with this API key/);
    assert.equal(
      (await ask(one.raw, '192.0.2.1', file, [`If-None-Match: ${etag}`])).status,
      429,
      'also for a 304',
    );
    assert.equal((await ask(other.raw)).status, 200);
    server.world.advance(6 * second);
    assert.deepEqual([(await ask(one.raw)).status, (await ask(one.raw)).status], [200, 429]);
  });

  test('is recorded once a minute, not for each request', async (t) => {
    const { server, ask, refusals } = await prepared(t, { apiKeyRate: 2 });
    const { raw, actor } = await makeKey(server.vault);
    for (let count = 0; count < 30; count += 1) await ask(raw);
    assert.deepEqual(
      refusals().map((event) => [event.actor, event.resource, event.detail, event.ip]),
      [[actor, `GET ${file}`, { code: 'rate_limited' }, '192.0.2.1']],
    );
    server.world.advance(minute);
    for (let count = 0; count < 30; count += 1) await ask(raw);
    assert.equal(refusals().length, 2);
  });

  test('applies neither to the public health endpoint nor to administrators', async (t) => {
    const { administrators, line } = alice;
    const { server } = await prepared(t, { apiKeyRate: 1, administrators });
    for (let count = 0; count < 20; count += 1) {
      assert.equal((await server.raw('GET', '/api/v1/health')).status, 200);
      assert.equal((await server.raw('GET', file, [line])).status, 200);
    }
  });
});

suite('without a request limit', () => {
  test('recorded requests of a key are limited, while 304 responses, metadata and HEAD are not', async (t) => {
    const { server, ask, refusals } = await prepared(t);
    const { raw, id, actor } = await makeKey(server.vault);
    const etag = (await ask(raw)).headers.get('ETag') ?? '';
    const { context } = server;
    // Ten thousand downloads take a while: they are counted as the server counts them.
    for (let n = 1; n < recordPace.burst; n += 1)
      assert.equal(context.keyLimits.recordExcessOf(id), undefined);
    const refused = await ask(raw);
    assert.deepEqual([refused.status, refused.headers.get('Retry-After')], [429, '1']);
    const renewal = await server.raw('POST', '/api/v1/certificates/www/renew', [
      `Authorization: Bearer ${raw}`,
    ]);
    assert.equal(renewal.status, 429);
    for (let n = 0; n < 20; n += 1) {
      assert.equal((await ask(raw, '192.0.2.1', file, [`If-None-Match: ${etag}`])).status, 304);
      assert.equal((await ask(raw, '192.0.2.1', '/api/v1/certificates/www')).status, 200);
    }
    assert.equal((await server.raw('HEAD', file, [`Authorization: Bearer ${raw}`])).status, 200);
    assert.deepEqual(
      refusals().map((event) => [event.actor, event.resource, event.detail]),
      [[actor, `GET ${file}`, { code: 'rate_limited' }]],
    );
    server.world.advance(second);
    for (let n = 0; n < 100; n += 1) assert.equal((await ask(raw)).status, 200);
    assert.equal((await ask(raw)).status, 429);
  });
});

suite('list pages requested with one API key', () => {
  const lists = ['certificates?limit=1', 'certificates/www/versions'];
  for (const list of lists) {
    test(`are limited by default: GET /${list}`, async (t) => {
      const { server, ask } = await prepared(t);
      const { raw, id } = await makeKey(server.vault);
      const path = `/api/v1/${list}`;
      assert.equal((await ask(raw, '192.0.2.1', path)).status, 200);
      for (let n = 1; n < pagePace.burst; n += 1)
        assert.equal(server.context.keyLimits.pageExcessOf(id), undefined);
      const excess = await ask(raw, '192.0.2.1', path);
      assert.deepEqual([excess.status, excess.headers.get('Retry-After')], [429, '1']);
      assert.match(JSON.parse(excess.body).detail, /Too many pages of lists with this API key/);
      assert.equal((await ask(raw, '192.0.2.1', '/api/v1/certificates/www')).status, 200);
      server.world.advance(second);
      assert.equal((await ask(raw, '192.0.2.1', path)).status, 200);
    });
  }

  test('are not limited with --api-key-rate 0', async (t) => {
    const { server, ask } = await prepared(t, { apiKeyRate: 0 });
    const { raw, id } = await makeKey(server.vault);
    for (let n = 0; n <= pagePace.burst; n += 1)
      assert.equal(server.context.keyLimits.pageExcessOf(id), undefined);
    assert.equal((await ask(raw, '192.0.2.1', '/api/v1/certificates')).status, 200);
  });
});

suite('rejected requests of a valid API key', () => {
  test('are recorded individually 100 times an hour for each kind, and then counted', async (t) => {
    const { server, ask, refusals } = await prepared(t);
    const { raw, id, actor } = await makeKey(server.vault, { scopes: ['renewals:trigger'] });
    const other = await makeKey(server.vault, { scopes: ['renewals:trigger'] });
    for (let n = 0; n < 250; n += 1) assert.equal((await ask(raw)).status, 403);
    assert.equal(refusals().length, refusalsPerHour);
    assert.equal((await ask(raw, '192.0.2.1', '/api/v1/api-keys')).status, 403);
    assert.equal((await ask(other.raw)).status, 403);
    assert.equal(refusals().length, refusalsPerHour + 2, 'another kind, and another key');
    server.world.advance(hour);
    await server.vault.refusals.write('due');
    const last = refusals().at(-1);
    assert.deepEqual([last?.actor, last?.resource, last?.detail.count], [actor, `api-key:${id}`, 150]);
    assert.equal((await ask(raw)).status, 403);
    assert.equal(refusals().length, refusalsPerHour + 4, 'in the next hour in full again');
  });

  test('are only counted when disk space runs low', async (t) => {
    const dataDir = tempDir(t);
    const audit = { ...settingsFor(dataDir).audit, lowSpace: 9e17 };
    const { server, ask, refusals } = await prepared(t, { dataDir, settings: { audit } });
    const { raw } = await makeKey(server.vault, { scopes: ['renewals:trigger'] });
    for (let n = 0; n < 5; n += 1) assert.equal((await ask(raw)).status, 403);
    assert.deepEqual(refusals(), []);
    await server.vault.refusals.write('all');
    assert.deepEqual(
      refusals().map(({ detail }) => detail.count),
      [5],
    );
  });
});
