/** The way of an order over HTTP, from the directory to the certificate, with a client of its own. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, type TestContext, test } from 'node:test';
import { changeAcmeClient } from '../../../src/domain/acme-server/clients/acme-client-change.ts';
import { updateAcmeClientInput } from '../../../src/domain/acme-server/clients/acme-client-inputs.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { addProfile } from '../../../src/domain/issuers/issuer-profiles.ts';
import { createProfileInput } from '../../../src/domain/private-ca/profile-inputs.ts';
import { serverContext } from '../../../src/http/server/listener-context.ts';
import { startServer } from '../../../src/http/server/server.ts';
import {
  type AcmeAnswer,
  AcmeTestClient,
  assertProblem,
  csrFor,
  makeAcmeClient,
  newKey,
  newPkcs8,
} from '../../harness/acme/server-client.ts';
import { derOf, opensslKeys, opensslRequest } from '../../harness/ca/openssl-requests.ts';
import { addStagingCa } from '../../harness/ca/private-ca-fixtures.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { apiChecker } from '../../harness/http/api-checker.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { needs } from '../../harness/processes/missing-program.ts';

async function opened(t: TestContext, others: Readonly<Record<string, unknown>> = {}) {
  const server = await checkedServer(t);
  const watch = apiChecker(server.document);
  const external = await makeAcmeClient(server.vault, others);
  const client = await AcmeTestClient.registered(server.url, external, { watch });
  return { server, watch, external, client };
}

const leafOf = (pem: string) => new X509Certificate(pem);

suite('an order', () => {
  test('is created, finalized and downloaded with responses as the API document declares', async (t) => {
    const { server, client, external } = await opened(t);
    const ordered = await client.order(['www.example.test', '*.example.test', 'WWW.example.test']);
    assert.equal(ordered.status, 201, ordered.text);
    const location = ordered.headers.get('Location') ?? '';
    assert.equal(ordered.json.status, 'ready');
    assert.deepEqual(ordered.json.identifiers, [
      { type: 'dns', value: 'www.example.test' },
      { type: 'dns', value: '*.example.test' },
    ]);
    assert.match(
      ordered.headers.get('Link') ?? '',
      /^<http:\/\/127\.0\.0\.1:\d+\/acme\/local-ca\/directory>;rel="index"$/,
    );
    const [first, second] = await Promise.all<AcmeAnswer>(
      ordered.json.authorizations.map((url: string) => client.post(url)),
    );
    assert.equal(first?.json.status, 'valid');
    assert.deepEqual(first?.json.identifier, { type: 'dns', value: 'www.example.test' });
    assert.equal(first?.json.challenges[0].status, 'valid');
    assert.deepEqual([second?.json.identifier.value, second?.json.wildcard], ['example.test', true]);
    const challenge = await client.post(first?.json.challenges[0].url, {});
    assert.equal(challenge.status, 200);
    assert.match(challenge.headers.get('Link') ?? '', /authorization\/\d+\/0>;rel="up"/);
    const csr = await csrFor(['www.example.test', '*.example.test']);
    const finalized = await client.post(ordered.json.finalize, { csr });
    assert.equal(finalized.json.status, 'valid', finalized.text);
    assert.equal(finalized.headers.get('Location'), location);
    const read = await client.post(location);
    assert.deepEqual(read.json, finalized.json);
    const downloaded = await client.post(read.json.certificate);
    assert.equal(downloaded.headers.get('Content-Type'), 'application/pem-certificate-chain');
    const [leaf = '', intermediate = ''] = downloaded.text.split(/(?<=-----END CERTIFICATE-----\n)/);
    assert.equal(leafOf(leaf).subjectAltName, 'DNS:www.example.test, DNS:*.example.test');
    assert(leafOf(leaf).verify(leafOf(intermediate).publicKey));
    const [issued] = eventsOf(server.dataDir, 'certificate.issue');
    assert.equal(issued?.actor, `acme-client:${external.id}:${external.name}`);
    assert.equal(issued?.ip, '127.0.0.1');
    assert.match(
      server.log.lines.join('\n'),
      new RegExp(`"actor":"acme-client:${external.id}:${external.name}"`),
    );
  });

  test('for IP addresses issues a certificate with them (RFC 8738)', async (t) => {
    const { client } = await opened(t, { domains: ['192.0.2.0/24', '2001:db8::/32'] });
    const { pem } = await client.issue(['192.0.2.7', '2001:db8::1']);
    assert.equal(leafOf(pem).subjectAltName, 'IP Address:192.0.2.7, IP Address:2001:DB8:0:0:0:0:0:1');
  });

  test('issues a certificate with the requested dates, and is rejected if they are too late or have passed', async (t) => {
    const { server, client } = await opened(t);
    const at = (ms: number) => new Date(server.world.now() + ms).toISOString().replace(/\.\d+/, '');
    const [notBefore, notAfter] = [at(60_000), at(3_600_000)];
    const { pem, order } = await client.issue(['www.example.test'], { notBefore, notAfter });
    assert.equal(leafOf(pem).validFromDate.getTime(), Date.parse(notBefore));
    assert.equal(leafOf(pem).validToDate.getTime(), Date.parse(notAfter));
    const { json } = await client.post(order);
    assert.deepEqual([json.notBefore, json.notAfter], [notBefore, notAfter]);
    assertProblem(
      await client.order(['www.example.test'], { notAfter: at(200 * 86_400_000) }),
      'malformed',
      400,
    );
    const late = await client.order(['www.example.test'], { notAfter });
    server.world.advance(3_600_000);
    client.nonces.length = 0;
    const csr = await csrFor(['www.example.test']);
    assert.match(assertProblem(await client.post(late.json.finalize, { csr }), 'malformed', 400), /notAfter/);
  });

  test('has the requested profile if the issuer has it and the client may use it', async (t) => {
    const { server, client, watch } = await opened(t);
    const profile = (name: string, more: object) =>
      addProfile(server.vault, localCli, 'local-ca', parseInput(createProfileInput, { name, ...more }));
    await profile('short', { lifetime: '1d', max_lifetime: '2d' });
    await profile('inside', { permit_domains: ['inside.example.test'] });
    const directory = (await (await server.get('/acme/local-ca/directory')).json()) as { meta: object };
    assert.deepEqual(directory.meta, {
      externalAccountRequired: true,
      profiles: {
        inside: 'For servers and clients',
        short: 'For servers and clients, valid for 1d, for at most 2d',
      },
    });
    const { pem, order } = await client.issue(['www.example.test'], { profile: 'short' });
    assert.equal(leafOf(pem).validToDate.getTime() - leafOf(pem).validFromDate.getTime(), 86_400_000);
    assert.equal((await client.post(order)).json.profile, 'short');
    assertProblem(await client.order(['www.example.test'], { profile: 'long' }), 'invalidProfile', 400);
    assertProblem(await client.order(['www.example.test'], { profile: 'inside' }), 'rejectedIdentifier', 400);
    const confined = await makeAcmeClient(server.vault, { profiles: ['local-ca/short'] });
    const other = await AcmeTestClient.registered(server.url, confined, { watch });
    assert.equal((await other.order(['www.example.test'])).json.profile, 'short');
    assertProblem(await other.order(['a.inside.example.test'], { profile: 'inside' }), 'invalidProfile', 400);
  });

  test('is rejected for names that its client may not order, with a subproblem for each and an audit event', async (t) => {
    const { server, client, external } = await opened(t);
    const answer = await client.order(['www.example.test', 'www.example.com', '192.0.2.1']);
    assertProblem(answer, 'rejectedIdentifier', 400);
    assert.deepEqual(
      answer.json.subproblems.map(({ identifier }: { identifier: object }) => identifier),
      [
        { type: 'dns', value: 'www.example.com' },
        { type: 'ip', value: '192.0.2.1' },
      ],
    );
    const [event] = eventsOf(server.dataDir, 'access.refuse');
    assert.equal(event?.actor, `acme-client:${external.id}:${external.name}`);
    assert.deepEqual(event?.detail, { code: 'rejectedIdentifier' });
  });

  const malformed: Readonly<Record<string, unknown>> = {
    'no identifiers': {},
    'identifiers that are no list': { identifiers: 'www.example.test' },
    'an identifier without a value': { identifiers: [{ type: 'dns' }] },
    'an empty list': { identifiers: [] },
    'a date that is a number': { identifiers: [{ type: 'dns', value: 'www.example.test' }], notAfter: 7 },
  };
  test('is rejected as malformed for missing or invalid identifiers and dates', async (t) => {
    const { client } = await opened(t);
    for (const [what, payload] of Object.entries(malformed)) {
      const answer = await client.post(client.directory.newOrder, payload);
      assert(assertProblem(answer, 'malformed', 400), what);
    }
    assertProblem(await client.post(client.directory.newOrder, ''), 'malformed', 400);
    assertProblem(await client.post(client.directory.newOrder, []), 'malformed', 400);
  });

  test('is rejected with 429 and Retry-After beyond the hourly rate of its client', async (t) => {
    const { server, client } = await opened(t, { rate: 2 });
    for (const _ of [1, 2]) assert.equal((await client.order(['www.example.test'])).status, 201);
    server.world.advance(600_000);
    const refused = await client.order(['www.example.test']);
    assert.match(assertProblem(refused, 'rateLimited', 429), /may order 2 times per hour/);
    assert.equal(refused.headers.get('Retry-After'), '3000');
    server.world.advance(3_000_000);
    client.nonces.length = 0;
    assert.equal((await client.order(['www.example.test'])).status, 201);
  });

  test('is invalid if it was not finalized before it expired', async (t) => {
    const { server, client } = await opened(t);
    const { json, headers } = await client.order(['www.example.test']);
    server.world.advance(86_400_000);
    client.nonces.length = 0;
    const read = await client.post(headers.get('Location') ?? '');
    assert.equal(read.json.status, 'invalid');
    assert.equal((await client.post(json.authorizations[0])).json.status, 'expired');
    const csr = await csrFor(['www.example.test']);
    assertProblem(await client.post(json.finalize, { csr }), 'orderNotReady', 403);
  });

  test('is invalid once an authorization of it is deactivated', async (t) => {
    const { client } = await opened(t);
    const { json, headers } = await client.order(['www.example.test', 'a.example.test']);
    const [, second] = json.authorizations;
    assertProblem(await client.post(second, { status: 'valid' }), 'malformed', 400);
    for (const _ of [1, 2])
      assert.equal((await client.post(second, { status: 'deactivated' })).json.status, 'deactivated');
    assert.equal((await client.post(headers.get('Location') ?? '')).json.status, 'invalid');
    const csr = await csrFor(['www.example.test', 'a.example.test']);
    assertProblem(await client.post(json.finalize, { csr }), 'orderNotReady', 403);
    const { order } = await client.issue(['www.example.test']);
    const [own] = (await client.post(order)).json.authorizations;
    assertProblem(await client.post(own, { status: 'deactivated' }), 'malformed', 400);
  });

  test('is listed for its account, newest first, page by page', async (t) => {
    const { server, client } = await opened(t);
    const orders: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      orders.unshift((await client.order(['www.example.test'])).headers.get('Location') ?? '');
    }
    const list = await client.post(`${client.account}/orders`);
    assert.deepEqual(list.json, { orders });
    assert.doesNotMatch(list.headers.get('Link') ?? '', /next/);
    const [row] = await server.vault.db.reader
      .selectFrom('acme_client_orders')
      .selectAll()
      .limit(1)
      .execute();
    assert(row);
    const { id: _, ...values } = row;
    await server.vault.db.write(async (writer) => {
      for (let count = 0; count < 100; count += 1)
        await writer.insertInto('acme_client_orders').values(values).execute();
    });
    const page = await client.post(`${client.account}/orders`);
    assert.equal(page.json.orders.length, 100);
    const next = /<([^>]+)>;rel="next"/.exec(page.headers.get('Link') ?? '')?.[1] ?? '';
    assert.deepEqual((await client.post(next)).json.orders, orders);
  });
});

suite('finalizing an order', () => {
  /** Programs in which the names or the key of the CSR are wrong. */
  const requests: Readonly<Record<string, readonly [type: string, csr: () => Promise<string> | string]>> = {
    'text that is not base64url': ['badCSR', () => 'a b'],
    'bytes that are not a CSR': ['badCSR', () => Buffer.from('csr').toString('base64url')],
    PEM: ['badCSR', async () => Buffer.from('-----BEGIN CERTIFICATE REQUEST-----').toString('base64url')],
    'another name': ['badCSR', () => csrFor(['a.example.test'])],
    'one more name': ['badCSR', () => csrFor(['www.example.test', 'a.example.test'])],
    'a changed signature': [
      'badCSR',
      async () => {
        const der = Buffer.from(await csrFor(['www.example.test']), 'base64url');
        der[der.length - 3] = (der.at(-3) ?? 0) ^ 1;
        return der.toString('base64url');
      },
    ],
  };
  for (const [what, [type, csr]] of Object.entries(requests)) {
    test(`is rejected with ${type} for ${what}, and the order stays ready`, async (t) => {
      const { server, client } = await opened(t);
      const { json, headers } = await client.order(['www.example.test']);
      assertProblem(await client.post(json.finalize, { csr: await csr() }), type, 400);
      assert.equal((await client.post(headers.get('Location') ?? '')).json.status, 'ready');
      assert.deepEqual(eventsOf(server.dataDir, 'certificate.issue'), []);
    });
  }

  test(
    'is rejected for an OpenSSL CSR with a forbidden key, name, extension or signature',
    needs('openssl'),
    async (t) => {
      const { client } = await opened(t);
      const { json } = await client.order(['www.example.test']);
      const names = 'DNS:www.example.test';
      const finalize = (wish: Parameters<typeof opensslRequest>[0]) =>
        client.post(json.finalize, { csr: derOf(opensslRequest(wish).csr).toString('base64url') });
      assertProblem(await finalize({ names, key: ['-newkey', 'rsa:1024'] }), 'badPublicKey', 400);
      const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:secp256k1'];
      assertProblem(await finalize({ names, key: curve }), 'badPublicKey', 400);
      assertProblem(await finalize({ names: `${names},email:a@example.test` }), 'badCSR', 400);
      assertProblem(await finalize({ names, subject: '/CN=other.example.test' }), 'badCSR', 400);
      assertProblem(await finalize({ names, extensions: ['basicConstraints=CA:TRUE'] }), 'badCSR', 400);
      assertProblem(await finalize({ names, options: ['-sha1'] }), 'badCSR', 400);
      const answer = await finalize({ names, key: opensslKeys.rsa2048, subject: '/CN=www.example.test' });
      assert.equal(answer.json.status, 'valid', answer.text);
    },
  );

  test('is rejected for a CSR with the key of an account', async (t) => {
    const { client } = await opened(t);
    const { json } = await client.order(['www.example.test']);
    const pkcs8 = client.key.privateKey.export({ format: 'der', type: 'pkcs8' });
    const csr = await csrFor(['www.example.test'], pkcs8);
    assert.match(
      assertProblem(await client.post(json.finalize, { csr }), 'badCSR', 400),
      /key of the CSR is that of an account/,
    );
  });

  test('is rejected for names that the client may no longer order', async (t) => {
    const { server, client, external } = await opened(t);
    const { json } = await client.order(['www.example.test']);
    const input = parseInput(updateAcmeClientInput, { domains: ['other.example.test'] });
    await changeAcmeClient(server.vault, localCli, external.id, input);
    const csr = await csrFor(['www.example.test']);
    assertProblem(await client.post(json.finalize, { csr }), 'rejectedIdentifier', 400);
  });

  test('again and concurrently at two workers issues one certificate', async (t) => {
    const { server, client } = await opened(t);
    const context = serverContext(server.vault, { version: '0', publicUrl: server.url });
    // A worker has locks of its own.
    const turns = Object.assign(Object.create(server.vault.turns), {
      take: (_: string, work: () => unknown) => work(),
    });
    const second = await startServer({ ...context, vault: { ...server.vault, turns } }, routes, {
      host: '127.0.0.1',
      port: 0,
    });
    t.after(() => second.stop(0));
    const { json, headers } = await client.order(['www.example.test']);
    const url: string = json.finalize;
    const csr = await csrFor(['www.example.test']);
    const there = url.replace(/^http:\/\/[^/]+/, second.url);
    const answers = await Promise.all(
      [url, there, there, url, there].map(async (place) =>
        client.send(place, await client.signed(url, { csr })),
      ),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 200, 200],
      answers.map(({ text }) => text).join(),
    );
    const again = await client.post(url, { csr: await csrFor(['www.example.test'], newPkcs8()) });
    assert.equal(again.json.certificate, answers[0]?.json.certificate);
    assert.deepEqual(new Set(answers.map(({ text }) => text)).size, 1);
    assert.equal(eventsOf(server.dataDir, 'certificate.issue').length, 1);
    assert.equal((await client.post(headers.get('Location') ?? '')).json.status, 'valid');
  });
});

suite('resources of orders', () => {
  test('return 404 to other accounts and directories, as if they did not exist, and stay unchanged', async (t) => {
    const { server, client, external, watch } = await opened(t);
    await addStagingCa(server.vault);
    const { order, certificate } = await client.issue(['www.example.test']);
    const { json } = await client.order(['www.example.test']);
    const stranger = await makeAcmeClient(server.vault, { issuers: ['local-ca', 'staging-ca'] });
    const other = await AcmeTestClient.registered(server.url, stranger, { watch });
    const [authorization] = json.authorizations;
    const places = [
      order,
      authorization,
      `${authorization.replace('authorization', 'challenge')}/http-01`,
      certificate,
    ];
    const missing = places.map((url) =>
      url.replace(/\/(order|authorization|challenge|certificate)\/\d+/, '/$1/999'),
    );
    const answers = [];
    for (const url of [...places, ...missing]) answers.push(await other.post(url));
    const csr = await csrFor(['www.example.test']);
    answers.push(await other.post(json.finalize, { csr }));
    answers.push(await other.post(authorization, { status: 'deactivated' }));
    for (const answer of answers) assertProblem(answer, 'malformed', 404);
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    assertProblem(await other.post(client.account ?? '', { status: 'deactivated' }), 'malformed', 404);
    assert.equal((await client.post(json.finalize, { csr })).json.status, 'valid');
    const elsewhere = await AcmeTestClient.registered(server.url, stranger, { watch, issuer: 'staging-ca' });
    assertProblem(await elsewhere.post(certificate.replace('local-ca', 'staging-ca')), 'malformed', 404);
    for (const odd of ['-1', '01', 'x', '1e3', '9'.repeat(30), '%00', '1%2F1']) {
      assertProblem(await client.post(order.replace(/\d+$/, odd)), 'malformed', 404);
      assertProblem(await client.post(authorization.replace(/\d+$/, odd)), 'malformed', 404);
    }
    const same = await AcmeTestClient.registered(server.url, external, { watch, key: await newKey() });
    assert.equal(
      (await same.post(certificate)).status,
      200,
      'the certificates of a client are there for all its accounts',
    );
    assertProblem(await same.post(order), 'malformed', 404);
  });

  test('reject a read with a payload', async (t) => {
    const { client } = await opened(t);
    const { order, certificate } = await client.issue(['www.example.test']);
    for (const url of [order, certificate, `${client.account}/orders`]) {
      assertProblem(await client.post(url, {}), 'malformed', 400);
    }
  });
});
