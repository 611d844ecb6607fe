/** The client for HTTP APIs of DNS providers, where the scenarios of the providers do not reach. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { z } from 'zod';
import { Secret } from '../../../src/base/secret.ts';
import { type ApiOptions, jsonApi, textsIn } from '../../../src/dns/providers/json-api.ts';
import { FakeProvider, fakeContext, JumpingWorld } from '../../harness/dns/fake-provider.ts';
import { refused } from '../../harness/dns/fake-provider-scenarios.ts';

const { signal } = new AbortController();

async function withApi(options: Partial<ApiOptions> = {}) {
  const fake = new FakeProvider();
  await fake.listen('https://desec.io');
  const context = fakeContext(new JumpingWorld(), fake.outbound);
  const api = jsonApi({
    context,
    title: 'Example DNS',
    baseUrl: `${fake.url}/api/`,
    permission: 'The token needs everything.',
    secrets: [new Secret('a/secret'), new Secret('')],
    describeError: (body) => textsIn(body).join(' '),
    ...options,
  });
  return { fake, api, world: context.world, get: { method: 'GET', path: '/x', purpose: 'do it' } as const };
}

test('paths are appended to the base URL, with an encoded query', async () => {
  const { fake, api, get } = await withApi();
  await using _ = fake;
  fake.handler = ({ url }) => ({ status: 200, json: url });
  const answer = await api.send({ ...get, query: { a: 'b c', n: 1 } }, signal);
  assert.equal(answer.body, `${fake.url}/api/x?a=b+c&n=1`);
});

test('an absolute URL is requested only on the origin of the API', async () => {
  const { fake, api, get } = await withApi();
  await using _ = fake;
  fake.handler = () => ({ status: 200, json: 'here' });
  assert.equal((await api.send({ ...get, path: `${fake.url}/api/next` }, signal)).body, 'here');
  for (const path of ['https://evil.example/', fake.url.replace('https:', 'http:'), 'http://127.0.0.1:1/']) {
    const { message } = await refused(api.send({ ...get, path }, signal));
    assert.match(message, /on another host, .+; no request was sent \(do it\)$/);
  }
  assert.equal(fake.requests.length, 1);
});

test('credentials are built for each attempt, and sent credentials are hidden in errors', async () => {
  let count = 0;
  const { fake, api, get } = await withApi({
    authorize: () => {
      count += 1;
      return { Authorization: `Bearer token-${count}` };
    },
  });
  await using _ = fake;
  fake.handler = ({ headers }) => ({
    status: 500,
    json: { said: `${headers.authorization} a/secret a%2Fsecret` },
  });
  const { message } = await refused(api.send(get, signal));
  assert.equal(message, 'Example DNS failed to do it (500: Bearer [secret] [secret] [secret])');
  assert.deepEqual(
    fake.requests.map(({ headers }) => headers.authorization),
    [1, 2, 3, 4].map((n) => `Bearer token-${n}`),
  );
});

test('a rejected token is renewed once', async () => {
  let token = 'old';
  const { fake, api, get } = await withApi({
    authorize: () => ({ Authorization: `Bearer ${token}` }),
    renew: () => {
      token = 'new';
    },
  });
  await using _ = fake;
  fake.handler = ({ headers }) => ({ status: headers.authorization === 'Bearer new' ? 200 : 401, json: {} });
  await api.send(get, signal);
  fake.handler = () => ({ status: 401, json: {} });
  const { message } = await refused(api.send(get, signal));
  assert.equal(message, 'Example DNS refused to do it (401: Unauthorized). The token needs everything.');
  assert.equal(fake.requests.length, 4);
});

test('an invalid Retry-After is ignored, and 0 or a past date is retried without a wait', async () => {
  const { fake, api, get, world } = await withApi();
  await using _ = fake;
  for (const [header, wait] of [
    ['soon', 1000],
    ['-3', 1000],
    ['Sat, 21 Nov 2020 12:00:00 GMT', 0],
    ['0', 0],
  ] as const) {
    fake.handler = () => ({ status: 200, json: {} });
    fake.interrupt({ status: 429, headers: { 'Retry-After': header } });
    await api.send(get, signal);
    assert.equal(world.waits.pop(), wait, header);
  }
});

test('a response of more than 1 MiB is rejected, and a malformed one is reported with the invalid field', async () => {
  const { fake, api, get } = await withApi();
  await using _ = fake;
  fake.handler = () => ({ status: 200, json: 'x'.repeat(2 ** 20) });
  assert.match(
    (await refused(api.send(get, signal))).message,
    /failed to do it: .* larger than 1048576 bytes/,
  );
  fake.handler = () => ({ status: 200, json: { zones: [{ id: true }] } });
  const answer = await api.send(get, signal);
  const schema = z.object({ zones: z.array(z.object({ id: z.string() })) });
  assert.throws(() => api.read(schema, answer), /unexpected response \(zones\.0\.id must be a string\)/);
});

test('a connection error is reported after three retries', async () => {
  const { fake, api, get, world } = await withApi();
  fake.handler = () => ({ status: 200, json: {} });
  await api.send(get, signal);
  await fake[Symbol.asyncDispose]();
  const { message } = await refused(api.send(get, signal));
  assert.match(
    message,
    /^Example DNS failed to do it: (cannot connect to 127\.0\.0\.1:\d+|127\.0\.0\.1:\d+ closed the connection): /,
  );
  assert.deepEqual(world.waits, [1000, 2000, 4000]);
});

test('a request is sent again after a second if the connection is closed without a response', async (t) => {
  let count = 0;
  const server = createServer((request, response) => {
    count += 1;
    if (count === 1) request.socket.destroy();
    else response.end('{}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const { fake, api, get, world } = await withApi({ baseUrl: `http://127.0.0.1:${port}` });
  await using _ = fake;
  assert.deepEqual((await api.send(get, signal)).body, {});
  assert.deepEqual([count, world.waits], [2, [1000]]);
});

test('textsIn finds strings at any depth', () => {
  assert.deepEqual(textsIn({ a: ['b', { c: 'd', e: 1 }], f: null, g: 'h' }), ['b', 'd', 'h']);
});
