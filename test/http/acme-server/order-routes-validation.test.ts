/**
 * Orders whose names the vault validates, over HTTP: from the challenge to the certificate, and what goes wrong on the
 * way.
 */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { suite, type TestContext, test } from 'node:test';
import { toJson } from '../../../src/base/json.ts';
import { findClientOrder, updateClientOrder } from '../../../src/db/tables/acme-server/acme-client-orders.ts';
import {
  type AcmeAnswer,
  AcmeTestClient,
  assertProblem,
  csrFor,
  makeAcmeClient,
} from '../../harness/acme/server-client.ts';
import { webServer } from '../../harness/acme/validation-fixtures.ts';
import { type FakeRecords, fakeDns } from '../../harness/dns/fake-dns.ts';
import { apiChecker } from '../../harness/http/api-checker.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { loopbackAllowed } from '../../harness/loopback-guard.ts';

const records: FakeRecords = {
  'A www.example.test': ['127.0.0.1'],
  'A a.example.test': ['127.0.0.1'],
};

/** A vault, an ACME client whose names it validates, and the web server that all names lead to. */
async function opened(
  t: TestContext,
  validation: readonly string[] = ['http-01'],
  { allowed = loopbackAllowed, caaIdentities = [] as readonly string[] } = {},
) {
  const dns = await fakeDns(t, records);
  const served = new Map<string, string>();
  let answer: RequestListener = (request, response) => {
    response.end(served.get(request.url?.split('/').at(-1) ?? '') ?? 'nothing');
  };
  const web = await webServer(t, (request, response) => answer(request, response));
  const server = await checkedServer(t, {
    settings: {
      resolver: dns.server,
      acmeServer: {
        ...{ allowed, forbidden: [], caaIdentities, termsOfService: undefined },
        ports: { http: web.port, tls: 1 },
      },
    },
  });
  const watch = apiChecker(server.document);
  const external = await makeAcmeClient(server.vault, {
    validation,
    domains: ['*.example.test', '127.0.0.0/8'],
  });
  const client = await AcmeTestClient.registered(server.url, external, { watch });
  return {
    ...{ server, dns, web, client, served },
    answering: (other: RequestListener) => {
      answer = other;
    },
    /** Prepares the challenge of this type of an authorization, and says so. */
    respond: async (authorization: string, type = 'http-01'): Promise<AcmeAnswer> => {
      const { json } = await client.post(authorization);
      const challenge = json.challenges.find((one: { type: string }) => one.type === type);
      assert(challenge, JSON.stringify(json));
      served.set(challenge.token, `${challenge.token}.${await client.thumbprint()}`);
      return client.post(challenge.url, {});
    },
    /** When all validations have ended. */
    idle: () => server.vault.validations.idle(),
  };
}

suite('an order whose names are validated', () => {
  test('is pending until its challenge is valid, then ready, and issues a certificate', async (t) => {
    const { client, respond, idle, web } = await opened(t);
    const ordered = await client.order(['www.example.test']);
    assert.equal(ordered.json.status, 'pending');
    const [authorization] = ordered.json.authorizations;
    const csr = await csrFor(['www.example.test']);
    assertProblem(await client.post(ordered.json.finalize, { csr }), 'orderNotReady', 403);
    const challenge = await respond(authorization);
    assert.equal(challenge.json.status, 'processing', challenge.text);
    assert.equal(challenge.headers.get('Retry-After'), '1');
    await idle();
    const decided = await client.post(authorization);
    assert.equal(decided.json.status, 'valid', decided.text);
    assert.equal(decided.headers.get('Retry-After'), null);
    assert.match(decided.json.challenges[0].validated, /^2026-/);
    assert.equal((await client.post(ordered.headers.get('Location') ?? '')).json.status, 'ready');
    assert.equal((await client.post(ordered.json.finalize, { csr })).json.status, 'valid');
    assert.equal(web.requests[0]?.headers.host, 'www.example.test');
    assert.equal((await client.post(challenge.json.url, {})).json.status, 'valid', 'again changes nothing');
    assert.equal(web.requests.length, 1);
  });

  test('is ready only when all its names are valid, in any order', async (t) => {
    const { client, respond, idle, answering, served } = await opened(t);
    const waiting = Promise.withResolvers<void>();
    answering((request, response) => {
      const text = served.get(request.url?.split('/').at(-1) ?? '');
      if (request.headers.host === 'www.example.test') waiting.promise.then(() => response.end(text));
      else response.end(text);
    });
    const { json, headers } = await client.order(['www.example.test', 'a.example.test']);
    const order = headers.get('Location') ?? '';
    for (const url of json.authorizations) await respond(url);
    while ((await client.post(json.authorizations[1])).json.status !== 'valid') t.signal.throwIfAborted();
    const read = await client.post(order);
    assert.deepEqual([read.json.status, read.headers.get('Retry-After')], ['pending', '1']);
    waiting.resolve();
    await idle();
    assert.equal((await client.post(order)).json.status, 'ready');
  });

  test('is invalid, with the reason, once the validation of one of its names fails', async (t) => {
    const { client, respond, idle, answering, server } = await opened(t);
    const { json, headers } = await client.order(['www.example.test', 'a.example.test']);
    answering((_, response) => response.writeHead(404).end());
    await respond(json.authorizations[0]);
    await idle();
    const authorization = await client.post(json.authorizations[0]);
    assert.equal(authorization.json.status, 'invalid');
    const [challenge] = authorization.json.challenges;
    assert.equal(challenge.error.type, 'urn:ietf:params:acme:error:unauthorized');
    assert.match(
      challenge.error.detail,
      /^http:\/\/www\.example\.test\/\S+ \(127\.0\.0\.1:\d+\) answered with status 404$/,
    );
    const order = await client.post(headers.get('Location') ?? '');
    assert.equal(order.json.status, 'invalid');
    assert.match(order.json.error.detail, /^www\.example\.test: http:/);
    assert.match(
      server.log.lines.join('\n'),
      /"identifier":"www\.example\.test".*"message":"challenge failed"/,
    );
    const csr = await csrFor(['www.example.test', 'a.example.test']);
    assertProblem(await client.post(json.finalize, { csr }), 'orderNotReady', 403);
    assert.match(
      assertProblem(await respond(json.authorizations[1]), 'malformed', 400),
      /authorization is pending and the order invalid; create a new order/,
    );
  });

  test('offers the challenge types of its client that are possible for each name', async (t) => {
    const { client } = await opened(t, ['http-01', 'tls-alpn-01', 'dns-01']);
    const { json } = await client.order(['www.example.test', '*.example.test', '127.0.0.1']);
    const offered = [];
    for (const url of json.authorizations) {
      const { challenges } = (await client.post(url)).json;
      offered.push(challenges.map(({ type }: { type: string }) => type));
    }
    assert.deepEqual(offered, [['http-01', 'tls-alpn-01', 'dns-01'], ['dns-01'], ['http-01', 'tls-alpn-01']]);
    const other = await opened(t, ['http-01']);
    assertProblem(await other.client.order(['*.example.test']), 'rejectedIdentifier', 400);
  });

  test('for a wildcard is validated by the TXT record of its base domain', async (t) => {
    const { client, dns, idle } = await opened(t, ['dns-01']);
    const { json, headers } = await client.order(['*.example.test']);
    const authorization = (await client.post(json.authorizations[0])).json;
    const [{ token, url }] = authorization.challenges;
    const digest = hash('sha256', `${token}.${await client.thumbprint()}`, 'base64url');
    dns.records = { 'TXT _acme-challenge.example.test': [digest] };
    await client.post(url, {});
    await idle();
    assert.equal((await client.post(headers.get('Location') ?? '')).json.status, 'ready');
  });

  test('fails validation if a name resolves to a loopback address that no setting allows', async (t) => {
    const { client, respond, idle, web } = await opened(t, ['http-01'], { allowed: [] });
    const { json } = await client.order(['www.example.test']);
    await respond(json.authorizations[0]);
    await idle();
    const { challenges } = (await client.post(json.authorizations[0])).json;
    assert.equal(challenges[0].error.type, 'urn:ietf:params:acme:error:connection');
    assert.match(
      challenges[0].error.detail,
      /resolves to 127\.0\.0\.1, but the vault does not validate at a loopback/,
    );
    assert.deepEqual(web.requests, []);
  });
});

suite('a challenge', () => {
  test('is validated once while its client repeats the request', async (t) => {
    const { client, respond, idle, web, answering, served } = await opened(t);
    const waiting = Promise.withResolvers<void>();
    answering((request, response) => {
      waiting.promise.then(() => response.end(served.get(request.url?.split('/').at(-1) ?? '')));
    });
    const { json } = await client.order(['www.example.test']);
    const { url } = (await respond(json.authorizations[0])).json;
    const again = await Promise.all([1, 2, 3].map(() => client.post(url, {})));
    assert.deepEqual(
      again.map(({ json: one }) => one.status),
      ['processing', 'processing', 'processing'],
    );
    waiting.resolve();
    await idle();
    assert.equal(web.requests.length, 1);
  });

  for (const asked of ['order', 'authorization', 'challenge'] as const) {
    test(`is validated again after its process died, when the client requests the ${asked}`, async (t) => {
      const { client, server, idle, respond, answering, web, served } = await opened(t);
      const { json, headers } = await client.order(['www.example.test']);
      const order = headers.get('Location') ?? '';
      const [authorization] = json.authorizations;
      answering((_, response) => response.end());
      const { url } = (await respond(authorization)).json;
      await idle();
      // As a process leaves it that is killed meanwhile.
      const id = Number(order.split('/').at(-1));
      const lost = async (until: number) => {
        await server.vault.db.write(async (writer) => {
          const row = await findClientOrder(writer, id);
          assert(row);
          const authorizations = JSON.parse(row.authorizations);
          const { error: _, validated: __, ...challenge } = authorizations[0].challenges[0];
          authorizations[0] = {
            ...authorizations[0],
            ...{ status: 'pending', challenges: [{ ...challenge, status: 'processing', until }] },
          };
          await updateClientOrder(writer, row, {
            ...{ authorizations: toJson(authorizations), status: 'pending' as const },
            ...{ error: null, finished_at: null },
          });
        });
      };
      await lost(server.world.now() + 30_000);
      answering((request, response) => response.end(served.get(request.url?.split('/').at(-1) ?? '')));
      const place = { order, authorization, challenge: url }[asked];
      const asking = () => client.post(place, asked === 'challenge' ? {} : '');
      await asking();
      await idle();
      assert.equal((await client.post(order)).json.status, 'pending', 'another process may still be at it');
      assert.equal(web.requests.length, 1);
      server.world.advance(30_001);
      const looked = await asking();
      assert.equal(looked.headers.get('Retry-After'), '1');
      await idle();
      assert.equal((await client.post(order)).json.status, 'ready');
      assert.equal(web.requests.length, 2);
    });
  }

  test('stays processing if the vault stops during its validation', async (t) => {
    const { client, server, respond, answering } = await opened(t);
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    answering(() => resolve());
    const { json } = await client.order(['www.example.test']);
    await respond(json.authorizations[0]);
    await asked;
    await server.vault.validations.end();
    const { challenges, status } = (await client.post(json.authorizations[0])).json;
    assert.deepEqual([status, challenges[0].status], ['pending', 'processing']);
  });

  test('leaves its authorization deactivated if its validation completes after the deactivation', async (t) => {
    const { client, respond, idle, answering, served } = await opened(t);
    const waiting = Promise.withResolvers<void>();
    answering((request, response) => {
      waiting.promise.then(() => response.end(served.get(request.url?.split('/').at(-1) ?? '')));
    });
    const { json, headers } = await client.order(['www.example.test']);
    await respond(json.authorizations[0]);
    assert.equal((await client.post(json.authorizations[0], { status: 'deactivated' })).status, 200);
    waiting.resolve();
    await idle();
    assert.equal((await client.post(json.authorizations[0])).json.status, 'deactivated');
    assert.equal((await client.post(headers.get('Location') ?? '')).json.status, 'invalid');
  });

  test('of an expired order is not validated', async (t) => {
    const { client, server, respond, web } = await opened(t);
    const { json } = await client.order(['www.example.test']);
    server.world.advance(86_400_001);
    client.nonces.length = 0;
    assert.match(
      assertProblem(await respond(json.authorizations[0]), 'malformed', 400),
      /The order has expired; create a new order/,
    );
    assert.deepEqual(web.requests, []);
  });
});

suite('CAA records', () => {
  const caaIdentities = ['ca.example.test'];
  const forbidding = { ...records, 'CAA example.test': [{ flags: 0, tag: 'issue', value: 'other.test' }] };

  test('for another CA fail the validation if a setting specifies the identity of this CA', async (t) => {
    const { client, dns, respond, idle } = await opened(t, ['http-01'], { caaIdentities });
    dns.records = forbidding;
    const { json } = await client.order(['www.example.test']);
    await respond(json.authorizations[0]);
    await idle();
    const { challenges } = (await client.post(json.authorizations[0])).json;
    assert.equal(challenges[0].error.type, 'urn:ietf:params:acme:error:caa');
  });

  test('for another CA reject finalization by a client whose names are not validated', async (t) => {
    const { client, dns } = await opened(t, [], { caaIdentities });
    const { json } = await client.order(['www.example.test', 'a.example.test', '127.0.0.1']);
    assert.equal(json.status, 'ready');
    const csr = await csrFor(['www.example.test', 'a.example.test', '127.0.0.1']);
    dns.records = forbidding;
    const refused = await client.post(json.finalize, { csr });
    assert.match(
      assertProblem(refused, 'caa', 403),
      /example\.test permits "other\.test"; this CA is ca\.example\.test/,
    );
    assert.deepEqual(
      refused.json.subproblems.map(({ identifier }: { identifier: { value: string } }) => identifier.value),
      ['www.example.test', 'a.example.test'],
    );
    dns.records = records;
    assert.equal((await client.post(json.finalize, { csr })).json.status, 'valid');
  });
});
