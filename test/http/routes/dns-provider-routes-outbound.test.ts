/** What a session can make the vault connect to: nothing on its machine, and nothing that answers is shown. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { fakeDns } from '../../harness/dns/fake-dns.ts';
import { administration } from '../../harness/http/administration.ts';
import { hastyWorld } from '../../harness/issuance/engine-vault.ts';

type Problem = { detail: string };

const inside = 'internal-4711';

/** An internal service on this host. */
async function internal(t: TestContext) {
  let asked = 0;
  const server = createServer((_, response) => {
    asked += 1;
    response.writeHead(403, { 'Content-Type': 'application/json' }).end(JSON.stringify({ detail: inside }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, asked: () => asked };
}

async function session(t: TestContext, settings: object) {
  // Challenge names have no aliases.
  const { server } = await fakeDns(t, {});
  return administration(t, { world: hastyWorld(), settings: { resolver: server, ...settings } });
}

const forms = (port: number) =>
  ['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', 'localhost', '2130706433', '0x7f000001'].map(
    (host) => `https://${host}:${port}/x`,
  );

test('issuer, DNS provider and channel URLs cannot reach loopback when outbound access is not allowed', async (t) => {
  const { port, asked } = await internal(t);
  const { expect, said } = await session(t, { allowOutbound: [] });
  for (const [index, url] of forms(port).entries()) {
    const issuer = { name: 'ca', directory_url: url };
    assert.match((await expect<Problem>(400, 'POST', '/api/v1/issuers', issuer)).detail, /--allow-outbound/);
    const channel = { name: `c${index}`, type: 'webhook', settings: { url } };
    const added = await expect<Problem & { name?: string }>(
      201,
      'POST',
      '/api/v1/notification-channels',
      channel,
    );
    const path = `/api/v1/notification-channels/${added.name}/test`;
    assert.match((await expect<Problem>(400, 'POST', path)).detail, /--allow-outbound/);
    const provider = { name: `p${index}`, type: 'webhook', zones: [`z${index}.test`], config: { url } };
    await expect(201, 'POST', '/api/v1/dns-providers', provider);
    const tried = await expect<Problem>(400, 'POST', `/api/v1/dns-providers/p${index}/test`, {
      domain: `www.z${index}.test`,
    });
    assert.match(tried.detail, /--allow-outbound/);
  }
  assert.equal(asked(), 0);
  assert.ok(!said().includes(inside));
});

test('response bodies of internal services are not shown when outbound access is allowed', async (t) => {
  const { port, asked } = await internal(t);
  const { expect, said } = await session(t, {});
  const url = `http://127.0.0.1:${port}/x`;
  const issuer = await expect<Problem>(400, 'POST', '/api/v1/issuers', { name: 'ca', directory_url: url });
  assert.match(issuer.detail, /403/);
  const channel = { name: 'c', type: 'webhook', settings: { url } };
  await expect(201, 'POST', '/api/v1/notification-channels', channel);
  assert.match((await expect<Problem>(400, 'POST', '/api/v1/notification-channels/c/test')).detail, /403/);
  const provider = { name: 'p', type: 'webhook', zones: ['z.test'], config: { url } };
  await expect(201, 'POST', '/api/v1/dns-providers', provider);
  const domain = { domain: 'www.z.test' };
  assert.match(
    (await expect<Problem>(400, 'POST', '/api/v1/dns-providers/p/test', domain)).detail,
    /403: Forbidden/,
  );
  assert.ok(asked() >= 3);
  assert.ok(!said().includes(inside));
});
