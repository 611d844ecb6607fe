/** How many renewals an API key can cause: each adds a version and a private key, which are kept. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { hour } from '../../../src/base/duration.ts';
import { renewalsPerHour } from '../../../src/domain/access/limits/key-limits.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import { runRenewal } from '../../../src/domain/renewals/renewal-run.ts';
import { opensslRequest } from '../../harness/ca/openssl-requests.ts';
import { checkedServer, codeOf } from '../../harness/http/checked.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { makeAdministrator, signIn } from '../../harness/http/sign-in-fixtures.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const list = '/api/v1/certificates';

async function prepared(t: TestContext, options: Parameters<typeof checkedServer>[1] = {}) {
  const server = await checkedServer(t, options);
  const { vault } = server;
  for (const name of ['web', 'mail']) await makeCertificate(vault, name);
  const key = await makeKey(vault, { name: 'low', scopes: ['renewals:trigger', 'certificates:sign'] });
  const post = (raw: string, name: string) => server.get(`${list}/${name}/renew`, raw, { method: 'POST' });
  /** Runs queued renewals, as the worker does. */
  const work = async () => {
    for (
      let claimed = await claimRenewal(vault, 'test');
      claimed;
      claimed = await claimRenewal(vault, 'test')
    ) {
      await runRenewal(vault, claimed, new AbortController().signal);
    }
  };
  const renew = async (raw = key.raw, name = 'web'): Promise<number> => {
    const { status } = await post(raw, name);
    await work();
    return status;
  };
  const sign = (csr: string) =>
    server.get(`${list}/web/sign`, key.raw, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-pem-file' },
      body: csr,
    });
  const exhaust = async () => {
    for (let n = 0; n < renewalsPerHour; n += 1) assert.equal(await renew(), 202);
  };
  const requested = () => eventsOf(server.dataDir, 'renewal.request').length;
  const issued = () => eventsOf(server.dataDir, 'certificate.issue').length;
  return { server, vault, key, post, work, renew, sign, exhaust, requested, issued };
}

suite('renewals requested with an API key', () => {
  test('get 429 after ten of one certificate in an hour, and add no version', async (t) => {
    const { server, key, post, work, renew, exhaust, requested, issued } = await prepared(t);
    await exhaust();
    const before = [requested(), issued()];
    const refused = await post(key.raw, 'web');
    assert.deepEqual([refused.status, refused.headers.get('Retry-After')], [429, String(hour / 1000)]);
    const problem = (await refused.json()) as { code: string; detail: string };
    assert.equal(problem.code, 'rate_limited');
    assert.match(problem.detail, /requested 10 renewals of this certificate in an hour/);
    for (let n = 0; n < 20; n += 1) assert.equal(await renew(), 429);
    await work();
    assert.deepEqual([requested(), issued()], before);
    assert.deepEqual(
      eventsOf(server.dataDir, 'access.refuse').map(({ actor, resource, detail }) => [
        actor,
        resource,
        detail,
      ]),
      [[key.actor, `POST ${list}/web/renew`, { code: 'rate_limited' }]],
      'one of them is recorded',
    );
    server.world.advance(hour);
    assert.equal(await renew(), 202);
  });

  test('are limited separately for each certificate and key, and not limited for sessions', async (t) => {
    const { server, vault, key, work, renew, exhaust } = await prepared(t);
    await exhaust();
    assert.deepEqual([await renew(), await renew(key.raw, 'mail')], [429, 202]);
    const other = await makeKey(vault, { name: 'other', scopes: ['renewals:trigger'] });
    assert.equal(await renew(other.raw), 202);
    await makeAdministrator(vault, 'alice');
    const page = await signIn(server, 'alice');
    for (let n = 0; n < renewalsPerHour + 2; n += 1) {
      assert.equal((await page.send('POST', `${list}/web/renew`)).status, 202);
      await work();
    }
  });

  test('count once while one is open', async (t) => {
    const { key, post, work, renew } = await prepared(t);
    const ids = new Set<number>();
    for (let n = 0; n < renewalsPerHour + 20; n += 1) {
      const response = await post(key.raw, 'web');
      assert.equal(response.status, 202);
      ids.add(((await response.json()) as { id: number }).id);
    }
    assert.equal(ids.size, 1);
    await work();
    for (let n = 1; n < renewalsPerHour; n += 1) assert.equal(await renew(), 202);
    assert.equal(await renew(), 429);
  });

  test('are not counted for unknown certificates', async (t) => {
    const { renew } = await prepared(t);
    for (let n = 0; n < renewalsPerHour + 5; n += 1) assert.equal(await renew(undefined, 'none'), 404);
  });

  test('have no limit with an API key rate of 0', async (t) => {
    const { renew } = await prepared(t, { apiKeyRate: 0 });
    for (let n = 0; n < renewalsPerHour + 2; n += 1) assert.equal(await renew(), 202);
  });
});

suite('certificate signing requests that an API key sends', needs('openssl'), () => {
  test('count as renewals, also those that replace an open one, unless they are invalid', async (t) => {
    const { sign, work, post, key, issued } = await prepared(t);
    const names = 'DNS:web.example.test';
    const csrs = [1, 2].map(() => opensslRequest({ names }).csr);
    const wrong = opensslRequest({ names: 'DNS:other.example.test' }).csr;
    for (let n = 0; n < renewalsPerHour; n += 1) {
      assert.equal((await sign(csrs[n % 2] ?? '')).status, 202);
      assert.equal(
        (await sign(csrs[n % 2] ?? '')).status,
        202,
        'the same one again returns the open renewal',
      );
      assert.equal((await sign(wrong)).status, 400);
    }
    const replacing = await sign(csrs[0] ?? '');
    assert.deepEqual([replacing.status, await codeOf(replacing)], [429, 'rate_limited']);
    await work();
    const before = issued();
    assert.equal((await sign(csrs[1] ?? '')).status, 429);
    assert.equal((await post(key.raw, 'web')).status, 429);
    await work();
    assert.equal(issued(), before);
  });
});
