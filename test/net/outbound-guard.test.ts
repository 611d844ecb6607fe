/**
 * The guard at each kind of connection that leaves the machine, with a server on loopback that must hear nothing:
 * addresses in all their forms, names that lead there, names that change, redirects and proxies.
 */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { AcmeClient } from '../../src/acme/acme-client.ts';
import { silentLog } from '../../src/base/log.ts';
import { realWorld } from '../../src/base/world.ts';
import { emailChannel } from '../../src/channels/email-channel.ts';
import { webhookChannel } from '../../src/channels/webhook-channel.ts';
import { acmeDns } from '../../src/dns/providers/acme-dns.ts';
import { rfc2136 } from '../../src/dns/providers/rfc2136.ts';
import { webhook } from '../../src/dns/providers/webhook.ts';
import { systemResolver } from '../../src/dns/resolver/system-resolver.ts';
import { parseAllowedOutbound } from '../../src/net/outbound-addresses.ts';
import { type LookupAll, type OutboundGuard, outboundGuard } from '../../src/net/outbound-guard.ts';
import { outboundHttp } from '../../src/net/outbound-http.ts';
import { fakeContext } from '../harness/dns/fake-provider.ts';
import { forwardProxy } from '../harness/http/forward-proxy.ts';

const { signal } = new AbortController();
const never = 'example.invalid';

/** Counts who connects, on all addresses of this machine, and says nothing. */
async function listener(t: TestContext) {
  const heard: string[] = [];
  const server = createServer((socket) => {
    heard.push(`${socket.localAddress}`);
    socket
      .on('error', () => undefined)
      .end('HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n');
  });
  await once(server.listen(0, '::'), 'listening');
  t.after(() => server.close());
  return { heard, port: (server.address() as AddressInfo).port };
}

/** Names as a test wants them, for as long as it does not change them. */
function names(addresses: Record<string, readonly string[]>): LookupAll {
  return (hostname, _, callback) => {
    const found = (addresses[hostname] ?? []).map((address) => ({
      address,
      family: address.includes(':') ? 6 : 4,
    }));
    const missing = Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' });
    queueMicrotask(() => callback(found.length === 0 ? missing : null, found));
  };
}

const message = {
  ...{ id: 'msg_1', type: 'test', timestamp: '2026-11-21T12:00:00Z', subject: 'a', text: 'a\n', data: {} },
};
const record = { name: '_acme-challenge.a.test', value: 'v', zone: 'a.test', domain: 'a.test' };
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const world = realWorld;

type Place = { readonly guard: OutboundGuard; readonly host: string; readonly port: number };
const urlOf = ({ host, port }: Place) => `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
const outboundOf = ({ guard }: Place) => outboundHttp(world, {}, 'test', guard);
const contextOf = (place: Place) => ({ ...fakeContext(), outbound: outboundOf(place), guard: place.guard });

/** Everything that connects to configured addresses. */
const callers: Readonly<Record<string, (place: Place) => Promise<unknown>>> = {
  'an HTTP request': (place) => outboundOf(place)({ method: 'GET', url: urlOf(place) }),
  'the ACME client': (place) =>
    new AcmeClient(
      { world, outbound: outboundOf(place), log: silentLog },
      { directoryUrl: urlOf(place), ca: undefined },
    ).directory(signal),
  'the webhook DNS provider': (place) =>
    webhook.create({ url: urlOf(place) }, contextOf(place)).present(record, signal),
  'the acme-dns provider': (place) =>
    acmeDns
      .create({ url: urlOf(place), username: 'a', password: 'b', subdomain: 'c' }, contextOf(place))
      .present(record, signal),
  'the rfc2136 provider': (place) => {
    const server = `${place.host.includes(':') ? `[${place.host}]` : place.host}:${place.port}`;
    const config = rfc2136.config.parse({ server, unsigned: true });
    return rfc2136.create(config, { ...contextOf(place), world }).present(record, signal);
  },
  'the webhook channel': (place) =>
    webhookChannel
      .create({ url: urlOf(place), secret }, { world, outbound: outboundOf(place), guard: place.guard })
      .send(message, signal),
  'the email channel': (place) =>
    emailChannel
      .create(
        { host: place.host, port: place.port, security: 'none', from: 'a@a.test', to: ['b@a.test'] },
        { world, outbound: outboundOf(place), guard: place.guard },
      )
      .send(message, signal),
};

const literals = [
  ...['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', '0.0.0.0', '::', '169.254.169.254', 'fe80::1'],
  ...['2130706433', '0x7f000001', '0x7f.1', '127.1', '017700000001', '224.0.0.1', '64:ff9b::7f00:1'],
];
const here = ['localhost', 'x.localhost', 'a.b.LocalHost'];

async function complaint(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => assert.fail('it went through'),
    (reason: unknown) => reason,
  );
  return (error as Error).message;
}

for (const [who, call] of Object.entries(callers)) {
  test(`${who} does not connect to loopback, link-local and metadata addresses, by number or by name`, async (t) => {
    const { heard, port } = await listener(t);
    const strict = outboundGuard();
    for (const host of [...literals, ...here]) {
      const said = await complaint(call({ guard: strict, host, port }));
      assert.match(said, /(address|metadata service).*; allow it with --allow-outbound /, host);
    }
    const guard = outboundGuard(
      [],
      names({ 'intern.example.test': ['127.0.0.1', '::1'], 'x.localhost': ['192.0.2.1'] }),
    );
    const said = await complaint(call({ guard, host: 'intern.example.test', port }));
    assert.match(
      said,
      /intern\.example\.test resolves to 127\.0\.0\.1, a loopback address; .* allow_outbound: "127\.0\.0\.1:\d+"/,
    );
    // Regardless of the answers of name servers.
    assert.match(
      await complaint(call({ guard, host: 'x.localhost', port })),
      /x\.localhost resolves to 127\.0\.0\.1/,
    );
    assert.deepEqual(heard, []);
  });

  test(`${who} connects to an allowed loopback address, but not after its host name is rebound`, async (t) => {
    const { heard, port } = await listener(t);
    const allowed = [parseAllowedOutbound(`127.0.0.2:${port}`)].filter((one) => one !== undefined);
    const addresses = { 'rebound.example.test': ['127.0.0.2'] };
    const guard = outboundGuard(allowed, names(addresses));
    const place = { guard, host: 'rebound.example.test', port };
    assert.doesNotMatch(await complaint(call(place)), /--allow-outbound/);
    assert.ok(heard.length > 0);
    assert.deepEqual([...new Set(heard)], ['::ffff:127.0.0.2']);
    addresses['rebound.example.test'] = ['127.0.0.1'];
    const before = heard.length;
    assert.match(await complaint(call(place)), /rebound\.example\.test resolves to 127\.0\.0\.1/);
    assert.equal(heard.length, before);
  });
}

test('only the allowed addresses of a host name are connected to', async (t) => {
  const { heard, port } = await listener(t);
  const allowed = [parseAllowedOutbound('127.0.0.2')].filter((one) => one !== undefined);
  const guard = outboundGuard(allowed, names({ 'both.example.test': ['127.0.0.1', '::1', '127.0.0.2'] }));
  const answer = await outboundHttp(
    world,
    {},
    'test',
    guard,
  )({
    method: 'GET',
    url: `http://both.example.test:${port}/`,
  });
  assert.deepEqual([answer.status, heard], [302, ['::ffff:127.0.0.2']]);
});

test('a name server on a local address is sent nothing unless it is the configured resolver', async (t) => {
  const socket = createSocket('udp6');
  const asked: string[] = [];
  socket.on('message', (query) => asked.push(query.includes('b\x04test') ? 'b.test' : 'another name'));
  socket.bind(0, '::');
  await once(socket, 'listening');
  t.after(() => socket.close());
  const { port } = socket.address();
  for (const server of [
    `127.0.0.1:${port}`,
    `[::1]:${port}`,
    `[::ffff:127.0.0.1]:${port}`,
    '169.254.169.254:53',
  ]) {
    const resolver = systemResolver(undefined, { timeoutMs: 50, tries: 1 });
    assert.match(await complaint(resolver.txt('a.test', server)), /--allow-outbound/, server);
  }
  const first = once(socket, 'message');
  const said = await complaint(
    systemResolver(`127.0.0.1:${port}`, { timeoutMs: 50, tries: 1 }).txt('b.test'),
  );
  assert.doesNotMatch(said, /--allow-outbound/);
  await first;
  assert.deepEqual([...new Set(asked)], ['b.test']);
});

test('a proxy on loopback is allowed, but requests through it to local addresses are rejected', async (t) => {
  const { heard, port } = await listener(t);
  const proxy = await forwardProxy(t);
  const environment = { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url };
  const ask = outboundHttp(world, environment, 'test');
  for (const host of ['127.0.0.1', '[::1]', '169.254.169.254', '2130706433', 'localhost', 'x.localhost']) {
    for (const scheme of ['http', 'https']) {
      const said = await complaint(ask({ method: 'GET', url: `${scheme}://${host}:${port}/` }));
      assert.match(said, /--allow-outbound/, host);
    }
  }
  assert.deepEqual([proxy.asked, heard], [[], []]);
  await complaint(ask({ method: 'GET', url: `https://${never}:${port}/` }));
  assert.equal(proxy.asked.length, 1);
});
