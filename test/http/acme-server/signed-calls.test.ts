/** What the ACME server accepts as a request: signed JSON with a fresh nonce, for its URL, by an account that may ask. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
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
  'no JSON': ['malformed', 400, { change: () => 'signed' }],
  'a list': ['malformed', 400, { change: () => [] }],
  'an empty object': ['malformed', 400, { change: () => ({}) }],
  'no signature': ['malformed', 400, { change: ({ signature: _, ...rest }) => rest }],
  'a signature that is no text': ['malformed', 400, { change: (body) => ({ ...body, signature: 1 }) }],
  'a signature with padding': [
    'malformed',
    400,
    { change: (body) => ({ ...body, signature: `${body.signature}==` }) },
  ],
  'a payload with spaces': ['malformed', 400, { change: (body) => ({ ...body, payload: 'e30 ' }) }],
  'a changed payload': ['malformed', 400, { change: (body) => ({ ...body, payload: 'e30' }) }],
  'an empty signature': ['malformed', 400, { change: (body) => ({ ...body, signature: '' }) }],
  'headers without a signature': ['malformed', 400, { change: (body) => ({ ...body, header: {} }) }],
  'the general form': ['malformed', 400, { change: (body) => ({ ...body, signatures: [] }) }],
  'headers that are no JSON': ['malformed', 400, { change: (body) => ({ ...body, protected: 'e30x' }) }],
  'the compact form': ['malformed', 400, { change: (b) => `${b.protected}.${b.payload}.${b.signature}` }],
  'no algorithm': ['malformed', 400, { change: (body) => ({ ...body, protected: 'e30' }) }],
  'the algorithm none': ['badSignatureAlgorithm', 400, { change: (body) => withAlgorithm(body, 'none') }],
  'a symmetric algorithm': ['badSignatureAlgorithm', 400, { change: (body) => withAlgorithm(body, 'HS256') }],
  'an algorithm of another key': [
    'badSignatureAlgorithm',
    400,
    { change: (body) => withAlgorithm(body, 'RS256') },
  ],
  'another key': ['malformed', 400, { key: other }],
  'jwk in place of kid': ['malformed', 400, { withJwk: true }],
  'jwk beside kid': ['malformed', 400, { header: { jwk: other.jwk } }],
  'neither jwk nor kid': ['malformed', 400, { header: { kid: undefined } }],
  'an unknown account': [
    'accountDoesNotExist',
    400,
    { header: { kid: 'http://vault.test/acme/local-ca/account/1' } },
  ],
  'an account that is no URL': ['accountDoesNotExist', 400, { header: { kid: '1' } }],
  'an account that never was': [
    ...(['accountDoesNotExist', 400] as const),
    async ({ account }) => ({ header: { kid: `${account}999` } }),
  ],
  'an account with zeros': [
    ...(['accountDoesNotExist', 400] as const),
    async ({ account = '' }) => ({ header: { kid: account.replace(/(\d+)$/, '0$1') } }),
  ],
  'the URL of another resource': [
    'unauthorized',
    403,
    { header: { url: 'http://127.0.0.1/acme/local-ca/new-order' } },
  ],
  'no URL': ['malformed', 400, { header: { url: undefined } }],
  'no nonce': ['badNonce', 400, { nonce: undefined }],
  'a nonce of nobody': ['badNonce', 400, { nonce: 'A'.repeat(43) }],
  'a nonce that is no base64url': ['malformed', 400, { nonce: 'a nonce!' }],
  'JSON as its type': ['malformed', 415, { contentType: 'application/json' }],
  'no type': ['malformed', 415, { contentType: 'text/plain' }],
  'too long a body': ['malformed', 413, { change: (body) => ({ ...body, more: 'x'.repeat(65_536) }) }],
  'a payload where there must be none': [
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
    test(`is refused with ${type} for ${what}`, async () => {
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

  test('is refused with crit, b64 and keys that are elsewhere', async () => {
    const { client } = await common();
    for (const header of [
      { crit: ['b64'], b64: true },
      { jku: 'https://x.test' },
      { x5u: 'https://x.test' },
    ]) {
      assertProblem(await client.post(client.account ?? '', '', { header }), 'malformed', 400);
    }
  });

  test('is accepted once, and answered with the nonce of the next one', async () => {
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

  test('with GET where there is only POST is answered with the methods, as a problem', async () => {
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

  test('finds no directory of an issuer that does not exist', async () => {
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

  test('for a nonce is answered with 200 to HEAD and 204 to GET, and never from a cache', async () => {
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

  test('ends the shared server', async () => {
    for (const end of ends.toReversed()) await end();
    assert(ends.length > 0);
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

  test('cannot repeat a request that changed something at another worker, whose nonces it may use', async (t) => {
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

  test('of a client that is revoked or expires is refused at its next request, and that is recorded', async (t) => {
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

  test('of a client that is confined to networks or issuers is refused elsewhere', async (t) => {
    const server = await testServer(t);
    const elsewhere = await makeAcmeClient(server.vault, { allowed_networks: ['192.0.2.0/24'] });
    const client = await AcmeTestClient.at(server.url);
    assert.match(assertProblem(await client.register(elsewhere), 'unauthorized', 403), /from 127\.0\.0\.1/);
  });

  test('signs for the URL that clients see: the public one, or that of the request', async (t) => {
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
