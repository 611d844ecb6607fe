/** The webhook speaks lego's httpreq, tolerates any body, and explains every refusal without its password. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { suite, test } from 'node:test';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { webhook } from '../../../src/dns/providers/webhook.ts';
import { FakeProvider, fakeContext, JumpingWorld } from '../../harness/dns/fake-provider.ts';
import type { FakeReply } from '../../harness/http/fake-server.ts';
import { freePort } from '../../harness/processes/port.ts';

const never = new AbortController().signal;
const record = {
  name: '_acme-challenge.example.test',
  value: 'v-1',
  zone: 'example.test',
  domain: 'example.test',
};
const password = 'p4ss-word';

async function start(t: TestContext, answer: (path: string) => FakeReply, config: object = {}) {
  const server = new FakeProvider();
  await server.listen();
  t.after(() => server[Symbol.asyncDispose]());
  server.handler = ({ path }) => answer(path);
  const world = new JumpingWorld();
  const provider = webhook.create(webhook.config.parse({ url: server.url, ...config }), fakeContext(world));
  return { server, world, provider };
}

test('present and remove post name and value to /present and /cleanup, with the credentials', async (t) => {
  const { server, provider } = await start(t, () => ({ status: 200, text: 'OK' }), {
    username: 'ü',
    password,
  });
  await provider.present(record, never);
  await provider.remove(record, never);
  const body = JSON.stringify({ fqdn: '_acme-challenge.example.test.', value: 'v-1' });
  assert.deepEqual(
    server.requests.map((request) => [request.method, request.path, request.body]),
    [
      ['POST', '/present', body],
      ['POST', '/cleanup', body],
    ],
  );
  const [request] = server.requests;
  assert.equal(request?.headers['content-type'], 'application/json');
  assert.equal(request?.headers.authorization, `Basic ${Buffer.from(`ü:${password}`).toString('base64')}`);
});

test('no Authorization header is sent without a username, and a path in the URL is kept', async (t) => {
  const server = new FakeProvider();
  await server.listen();
  t.after(() => server[Symbol.asyncDispose]());
  server.handler = () => ({ status: 204 });
  for (const url of [`${server.url}/dns/hook`, `${server.url}/dns/hook/`]) {
    await webhook.create({ url }, fakeContext()).present(record, never);
  }
  assert.deepEqual(
    server.requests.map(({ path, headers }) => [path, headers.authorization]),
    Array(2).fill(['/dns/hook/present', undefined]),
  );
});

suite('errors', () => {
  const failure = async (t: TestContext, reply: FakeReply, config: object = { username: 'u', password }) => {
    const { provider, server, world } = await start(t, () => reply, config);
    const error: unknown = await provider.present(record, never).then(
      () => assert.fail('it went well'),
      (cause) => cause,
    );
    assert(error instanceof DnsProviderError, String(error));
    assert(!error.message.includes(password));
    return { error, requests: server.requests.length, waits: world.waits };
  };

  test('HTTP 401 and 403 are reported with a hint to check or set the credentials', async (t) => {
    const { error, requests } = await failure(t, {
      status: 401,
      json: { error: `internal-4711 ${password}` },
    });
    assert.match(
      error.message,
      /refused to set the TXT record _acme-challenge\.example\.test \(401: Unauthorized\)/,
    );
    assert.match(error.message, /Check username and password\.$/);
    assert.equal(requests, 1);
    const bare = await failure(t, { status: 403, text: 'no' }, {});
    assert.match(bare.error.message, /\(403: Forbidden\)\. Set username and password\.$/);
  });

  test('HTTP 429 is retried after Retry-After, and a long Retry-After is passed on without a retry', async (t) => {
    const short = await failure(t, { status: 429, headers: { 'Retry-After': '2' }, text: 'slow' });
    assert.deepEqual(short.waits, [2000, 2000, 2000]);
    assert.equal(short.error.retryAfterMs, 2000);
    const long = await failure(t, { status: 429, headers: { 'Retry-After': '600' } });
    assert.equal(long.requests, 1);
    assert.equal(long.error.retryAfterMs, 600_000);
  });

  test('HTTP 500 is retried, and HTTP errors are reported without the response body', async (t) => {
    const broken = await failure(t, { status: 500, text: '<html>\n<b>internal-4711</b>' });
    assert.equal(broken.requests, 4);
    assert.match(broken.error.message, /\(500: Internal Server Error\)$/);
    assert.match((await failure(t, { status: 404 })).error.message, /\(404: Not Found\)$/);
    assert.match(
      (await failure(t, { status: 302, headers: { Location: 'http://evil.test/' } })).error.message,
      /302/,
    );
  });

  test('a missing server is reported', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const provider = webhook.create({ url }, fakeContext());
    await assert.rejects(
      provider.remove(record, never),
      /failed to remove the TXT record _acme-challenge\.example\.test: cannot connect to /,
    );
  });
});

test('settings require https or a loopback host, and both credentials or neither', () => {
  const isGood = (config: object) => webhook.config.safeParse(config).success;
  for (const url of ['https://hook.test/x', 'http://localhost:1', 'http://127.0.0.1', 'http://[::1]:80']) {
    assert(isGood({ url }), url);
  }
  for (const url of [
    'http://hook.test',
    'ftp://a',
    'hook.test',
    '',
    'https://u:p@a',
    'https://a?b',
    'https://a#b',
  ]) {
    assert(!isGood({ url }), url);
  }
  const url = 'https://hook.test';
  assert(isGood({ url, username: 'u', password }));
  for (const more of [{ username: 'u' }, { password }, { username: 'a:b', password }, { mode: 'RAW' }]) {
    assert(!isGood({ url, ...more }), JSON.stringify(more));
  }
});
