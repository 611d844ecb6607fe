/** acme-dns: one request per value, its confirmation, and words about delegation and credentials. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { suite, test } from 'node:test';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { acmeDns } from '../../../src/dns/providers/acme-dns.ts';
import { FakeProvider, fakeContext } from '../../harness/dns/fake-provider.ts';
import type { FakeReply } from '../../harness/http/fake-server.ts';

const never = new AbortController().signal;
const fulldomain = 'd420c923.auth.test';
const record = { name: fulldomain, value: 'v-1', zone: fulldomain, domain: 'www.example.test' };
const credentials = { username: 'c36f50e8', password: 'htB9mR9DY', subdomain: 'd420c923' };

async function start(t: TestContext, reply: (body: { txt: string }) => FakeReply, more: object = {}) {
  const server = new FakeProvider();
  await server.listen();
  t.after(() => server[Symbol.asyncDispose]());
  server.handler = ({ body }) => reply(JSON.parse(body));
  const provider = acmeDns.create(
    acmeDns.config.parse({ url: server.url, ...credentials, ...more }),
    fakeContext(),
  );
  return { server, provider };
}

test('present posts subdomain and value with the credentials, and remove sends no request', async (t) => {
  const { server, provider } = await start(t, ({ txt }) => ({ status: 200, json: { txt } }), { fulldomain });
  await provider.present(record, never);
  await provider.remove(record, never);
  assert.equal(server.requests.length, 1);
  const [request] = server.requests;
  assert.deepEqual([request?.method, request?.path], ['POST', '/update']);
  assert.equal(request?.body, JSON.stringify({ subdomain: 'd420c923', txt: 'v-1' }));
  assert.equal(request?.headers['x-api-user'], credentials.username);
  assert.equal(request?.headers['x-api-key'], credentials.password);
});

test('present rejects a name that is not delegated to acme-dns before it sends a request', async (t) => {
  const { server, provider } = await start(t, () => ({ status: 200 }), { fulldomain: `${fulldomain}.` });
  const name = '_acme-challenge.www.example.test';
  await assert.rejects(provider.present({ ...record, name }, never), {
    name: 'DnsProviderError',
    message: `acme-dns serves only ${fulldomain}, not ${name}: create a CNAME from _acme-challenge.www.example.test to d420c923.auth.test`,
  });
  assert.equal(server.requests.length, 0);
});

suite('present reports a clear error for', () => {
  const cases: readonly (readonly [string, FakeReply, RegExp])[] = [
    [
      'HTTP 401',
      { status: 401, json: { error: `internal-4711 ${credentials.password}` } },
      /\(401: Unauthorized\)\. Check/,
    ],
    [
      'HTTP 400',
      { status: 400, json: { error: 'internal-4711' } },
      /failed to set the TXT record d420c923\.auth\.test \(400: Bad Request\)$/,
    ],
    ['HTTP 429', { status: 429, headers: { 'Retry-After': '90' } }, /too many requests .*retry after 90 s/],
    ['HTTP 500', { status: 500, text: 'internal-4711' }, /\(500: Internal Server Error\)$/],
    ['an unreadable response', { status: 200, text: '<html>internal-4711' }, /unreadable response \(200\)/],
    [
      'a response without txt',
      { status: 200, json: {} },
      /failed to set .*: unexpected response \(txt is missing\)/,
    ],
    [
      'a response that confirms another value',
      { status: 200, json: { txt: 'v-2' } },
      /it confirmed another value$/,
    ],
  ];
  for (const [what, reply, words] of cases) {
    test(what, async (t) => {
      const { provider } = await start(t, () => reply);
      await assert.rejects(provider.present(record, never), (error: Error) => {
        assert(error instanceof DnsProviderError, String(error));
        assert.match(error.message, words);
        assert(!error.message.includes(credentials.password));
        assert.doesNotMatch(error.message, /internal-4711/);
        return true;
      });
    });
  }
});
