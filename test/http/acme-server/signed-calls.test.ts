/**
 * What the ACME server accepts as a request: signed JSON with a fresh nonce, for its URL, by an account that may ask.
 */
import assert from 'node:assert/strict';
import { after, suite, type TestContext, test } from 'node:test';
import { revokeAcmeClient } from '../../../src/domain/acme-server/clients/acme-clients.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { serverContext } from '../../../src/http/server/listener-context.ts';
import { startServer } from '../../../src/http/server/server.ts';
import {
  AcmeTestClient,
  assertProblem,
  makeAcmeClient,
  newKey,
  type SentOptions,
  sign,
} from '../../harness/acme/server-client.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { apiChecker } from '../../harness/http/api-checker.ts';
import { type CheckedServer, checkedServer } from '../../harness/http/checked.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { testServer } from '../../harness/http/test-server.ts';

let shared: Promise<{ server: CheckedServer; client: AcmeTestClient }> | undefined;

/** One server and account for all tests that change nothing. */
function common(): Promise<{ server: CheckedServer; client: AcmeTestClient }> {
  shared ??= (async () => {
    const server = await checkedServer({ after: (end) => ends.push(end as () => Promise<void>) });
    const watch = apiChecker(server.document);
    const client = await AcmeTestClient.registered(server.url, await makeAcmeClient(server.vault), { watch });
    return { server, client };
  })();
  return shared;
}
const ends: (() => Promise<void>)[] = [];

type Bad = readonly [
  type: string,
  status: number,
  options: SentOptions | ((client: AcmeTestClient) => Promise<SentOptions>),
];

const other = await newKey();

const bad: Readonly<Record<string, Bad>> = {
  'a body that is not JSON': ['malformed', 400, { change: () => 'signed' }],
  'a JSON array': ['malformed', 400, { change: () => [] }],
  'an empty object': ['malformed', 400, { change: () => ({}) }],
  'no signature': ['malformed', 400, { change: ({ signature: _, ...rest }) => rest }],
  'a signature that is not a string': ['malformed', 400, { change: (body) => ({ ...body, signature: 1 }) }],
  'a signature with padding': [
    'malformed',
    400,
    { change: (body) => ({ ...body, signature: `${body.signature}==` }) },
  ],
  'a payload with spaces': ['malformed', 400, { change: (body) => ({ ...body, payload: 'e30 ' }) }],
  'a changed payload': ['malformed', 400, { change: (body) => ({ ...body, payload: 'e30' }) }],
  'an empty signature': ['malformed', 400, { change: (body) => ({ ...body, signature: '' }) }],
  'an unprotected header': ['malformed', 400, { change: (body) => ({ ...body, header: {} }) }],
  'the general JSON serialization': ['malformed', 400, { change: (body) => ({ ...body, signatures: [] }) }],
  'a protected header that is not JSON': [
    'malformed',
    400,
    { change: (body) => ({ ...body, protected: 'e30x' }) },
  ],
  'the compact serialization': [
    'malformed',
    400,
    { change: (b) => `${b.protected}.${b.payload}.${b.signature}` },
  ],
  'no algorithm': ['malformed', 400, { change: (body) => ({ ...body, protected: 'e30' }) }],
  'the algorithm none': ['badSignatureAlgorithm', 400, { change: (body) => withAlgorithm(body, 'none') }],
  'a symmetric algorithm': ['badSignatureAlgorithm', 400, { change: (body) => withAlgorithm(body, 'HS256') }],
  'an algorithm that does not match the key': [
    'badSignatureAlgorithm',
    400,
    { change: (body) => withAlgorithm(body, 'RS256') },
  ],
  'the signature of another key': ['malformed', 400, { key: other }],
  'jwk in place of kid': ['malformed', 400, { withJwk: true }],
  'jwk beside kid': ['malformed', 400, { header: { jwk: other.jwk } }],
  'neither jwk nor kid': ['malformed', 400, { header: { kid: undefined } }],
  'an unknown account': [
    'accountDoesNotExist',
    400,
    { header: { kid: 'http://vault.test/acme/local-ca/account/1' } },
  ],
  'a kid that is not a URL': ['accountDoesNotExist', 400, { header: { kid: '1' } }],
  'an account that never existed': [
    ...(['accountDoesNotExist', 400] as const),
    async ({ account }) => ({ header: { kid: `${account}999` } }),
  ],
  'an account URL with a leading zero': [
    ...(['accountDoesNotExist', 400] as const),
    async ({ account = '' }) => ({ header: { kid: account.replace(/(\d+)$/, '0$1') } }),
  ],
  'the URL of another resource': [
    'unauthorized',
    403,
    { header: { url: 'http://127.0.0.1/acme/local-ca/new-order' } },
  ],
  'the URL of another host': [
    ...(['unauthorized', 403] as const),
    async ({ account = '' }) => ({ header: { url: account.replace('127.0.0.1', 'localhost') } }),
  ],
  'no URL': ['malformed', 400, { header: { url: undefined } }],
  'no nonce': ['badNonce', 400, { nonce: undefined }],
  'a nonce that the server did not issue': ['badNonce', 400, { nonce: 'A'.repeat(43) }],
  'a nonce that is not base64url': ['malformed', 400, { nonce: 'a nonce!' }],
  'the content type application/json': ['malformed', 415, { contentType: 'application/json' }],
  'the content type text/plain': ['malformed', 415, { contentType: 'text/plain' }],
  'a body that is too long': [
    'malformed',
    413,
    { change: (body) => ({ ...body, more: 'x'.repeat(65_536) }) },
  ],
  'an account update with an invalid contact': [
    ...(['malformed', 400] as const),
    async (client) => ({ change: () => client.signed(client.account ?? '', { contact: 7 }) }),
  ],
};

/** The same body with another algorithm in its header; nobody signs it again. */
function withAlgorithm(body: Record<string, unknown>, alg: string): unknown {
  const header = JSON.parse(Buffer.from(String(body.protected), 'base64url').toString());
  return { ...body, protected: Buffer.from(JSON.stringify({ ...header, alg })).toString('base64url') };
}

suite('a request', () => {
  for (const [what, [type, status, options]] of Object.entries(bad)) {
    test(`is rejected with ${type} for ${what}`, async () => {
      const { client } = await common();
      const given = typeof options === 'function' ? await options(client) : options;
      const url = client.account ?? '';
      const nonce = 'nonce' in given ? {} : { nonce: await client.nonce() };
      const { change, ...rest } = { ...nonce, ...given };
      const signed = (await client.signed(url, '', rest)) as Record<string, unknown>;
      const body = change === undefined ? signed : await change(signed);
      const answer = await client.send(url, body, rest.contentType);
      assertProblem(answer, type, status);
      assert.match(answer.headers.get('Replay-Nonce') ?? '', /^[\w-]{43}$/);
      assert.match(answer.headers.get('Link') ?? '', /;rel="index"/);
      assert.equal(answer.headers.get('Cache-Control'), 'no-store');
      if (type === 'badSignatureAlgorithm')
        assert.deepEqual(answer.json.algorithms, ['ES256', 'ES384', 'RS256', 'EdDSA']);
    });
  }

  test('is rejected with crit and b64, jku or x5u in its protected header', async () => {
    const { client } = await common();
    for (const header of [
      { crit: ['b64'], b64: true },
      { jku: 'https://x.test' },
      { x5u: 'https://x.test' },
    ]) {
      assertProblem(await client.post(client.account ?? '', '', { header }), 'malformed', 400);
    }
  });

  test('is accepted once, and its replay gets badNonce with a usable Replay-Nonce', async () => {
    const { client } = await common();
    const url = client.account ?? '';
    const body = await client.signed(url, '');
    const first = await client.send(url, body);
    assert.equal(first.status, 200);
    const again = await client.send(url, body);
    assertProblem(again, 'badNonce', 400);
    assert.equal(
      (
        await client.send(
          url,
          await client.signed(url, '', { nonce: again.headers.get('Replay-Nonce') ?? '' }),
        )
      ).status,
      200,
    );
  });

  test('with GET to a resource that only allows POST gets 405 with Allow and a problem', async () => {
    const { server } = await common();
    for (const path of ['new-account', 'order/1', 'account/1', 'authorization/1/0', 'certificate/1/1']) {
      const response = await server.get(`/acme/local-ca/${path}`);
      assert.equal(response.status, 405);
      assert.equal(response.headers.get('Allow'), 'POST');
      assert.equal(
        ((await response.json()) as { type: string }).type,
        'urn:ietf:params:acme:error:malformed',
      );
      assert.match(response.headers.get('Replay-Nonce') ?? '', /^[\w-]{43}$/);
    }
  });

  test('to the directory or new-nonce of an unknown issuer gets 404', async () => {
    const { server } = await common();
    for (const path of ['directory', 'new-nonce']) {
      const response = await server.get(`/acme/nobody/${path}`);
      assert.equal(response.status, 404);
      assert.equal(
        ((await response.json()) as { type: string }).type,
        'urn:ietf:params:acme:error:malformed',
      );
    }
  });

  test('for a nonce gets 200 for HEAD and 204 for GET, with Cache-Control: no-store', async () => {
    const { server } = await common();
    for (const [method, status] of [
      ['HEAD', 200],
      ['GET', 204],
    ] as const) {
      const response = await server.get('/acme/local-ca/new-nonce', undefined, { method });
      assert.equal(response.status, status);
      assert.match(response.headers.get('Replay-Nonce') ?? '', /^[\w-]{43}$/);
      assert.equal(response.headers.get('Cache-Control'), 'no-store');
    }
  });

  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
});

suite('an account', () => {
  /** A server with an account, and a second server on the same vault, as another worker. */
  async function workers(t: TestContext) {
    const server = await testServer(t);
    const context = serverContext(server.vault, { version: '0', publicUrl: server.url });
    const second = await startServer(context, routes, { host: '127.0.0.1', port: 0 });
    t.after(() => second.stop(0));
    const external = await makeAcmeClient(server.vault);
    return { server, second, external, client: await AcmeTestClient.registered(server.url, external) };
  }

  test('cannot replay a request at another worker, but may use a nonce of that worker', async (t) => {
    const { client, second } = await workers(t);
    const url = client.directory.newOrder;
    const there = url.replace(/^http:\/\/[^/]+/, second.url);
    const payload = { identifiers: [{ type: 'dns', value: 'www.example.test' }] };
    const body = await client.signed(url, payload);
    assert.equal((await client.send(url, body)).status, 201);
    assertProblem(await client.send(there, body), 'badNonce', 400);
    const fresh = await fetch(`${second.url}/acme/local-ca/new-nonce`, { method: 'HEAD' });
    const nonce = fresh.headers.get('Replay-Nonce') ?? '';
    assert.equal((await client.send(url, await client.signed(url, payload, { nonce }))).status, 201);
  });

  test('is rejected at its next request after its client was revoked, which is recorded, or has expired', async (t) => {
    const { server, client, external } = await workers(t);
    assert.equal((await client.post(client.account ?? '')).status, 200);
    await revokeAcmeClient(server.vault, localCli, external.id);
    const refused = await client.post(client.account ?? '');
    assert.match(assertProblem(refused, 'unauthorized', 403), /was revoked/);
    const [event] = eventsOf(server.dataDir, 'access.refuse');
    assert.equal(event?.actor, `acme-client:${external.id}:${external.name}`);
    const expiring = await makeAcmeClient(server.vault, { expires_at: '2026-11-22T00:00:00Z' });
    const later = await AcmeTestClient.registered(server.url, expiring);
    server.world.advance(86_400_000);
    later.nonces.length = 0;
    assert.match(assertProblem(await later.post(later.account ?? ''), 'unauthorized', 403), /expired/);
  });

  test('is not created from an address outside the networks of its client', async (t) => {
    const server = await testServer(t);
    const elsewhere = await makeAcmeClient(server.vault, { allowed_networks: ['192.0.2.0/24'] });
    const client = await AcmeTestClient.at(server.url);
    assert.match(assertProblem(await client.register(elsewhere), 'unauthorized', 403), /from 127\.0\.0\.1/);
  });

  test('must sign for the public URL of the vault, not for the address of the server', async (t) => {
    const server = await testServer(t, { publicUrl: 'https://vault.example.test' });
    const directory = (await (await server.get('/acme/local-ca/directory')).json()) as Record<string, string>;
    assert.equal(directory.newAccount, 'https://vault.example.test/acme/local-ca/new-account');
    const { privateKey, jwk, alg } = await newKey();
    const nonce = (await server.get('/acme/local-ca/new-nonce')).headers.get('Replay-Nonce') ?? '';
    const send = async (url: string) => {
      const body = await sign({ onlyReturnExisting: true }, { alg, jwk, nonce, url }, privateKey);
      const init = {
        method: 'POST',
        headers: { 'Content-Type': 'application/jose+json' },
        body: JSON.stringify(body),
      };
      return (await server.get('/acme/local-ca/new-account', undefined, init)).json() as Promise<{
        type: string;
      }>;
    };
    assert.match((await send(`${server.url}/acme/local-ca/new-account`)).type, /unauthorized$/);
    assert.match((await send(directory.newAccount ?? '')).type, /accountDoesNotExist$/);
  });
});
