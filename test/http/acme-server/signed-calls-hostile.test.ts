/**
 * Clients that break the protocol on purpose, in large numbers: every answer is a problem and none a failure of the
 * server, and what they leave in the database has a limit.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { insertClientOrder } from '../../../src/db/tables/acme-server/acme-client-orders.ts';
import {
  type AcmeAnswer,
  AcmeTestClient,
  assertProblem,
  csrFor,
  makeAcmeClient,
  newKey,
  sign,
} from '../../harness/acme/server-client.ts';
import { apiChecker } from '../../harness/http/api-checker.ts';
import { type CheckedServer, checkedServer } from '../../harness/http/checked.ts';
import { open, readToEnd } from '../../harness/http/raw.ts';

async function opened(
  t: TestContext,
  others: Readonly<Record<string, unknown>> = {},
  options: Parameters<typeof checkedServer>[1] = {},
) {
  const server = await checkedServer(t, options);
  const watch = apiChecker(server.document);
  const external = await makeAcmeClient(server.vault, others);
  const client = await AcmeTestClient.registered(server.url, external, { watch });
  return { server, watch, external, client };
}

type Table = 'acme_client_orders' | 'acme_client_accounts' | 'acme_nonces' | 'certificates' | 'audit_events';

async function rows({ vault }: CheckedServer, table: Table): Promise<number> {
  const { count } = await vault.db.reader
    .selectFrom(table)
    .select((build) => build.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

async function allRows(server: CheckedServer): Promise<Record<string, number>> {
  const tables = ['acme_client_orders', 'acme_client_accounts', 'acme_nonces', 'certificates'] as const;
  return Object.fromEntries(
    await Promise.all(tables.map(async (table) => [table, await rows(server, table)])),
  );
}

/** A problem of ACME that blames the client. */
function assertRefused({ status, json, text, headers }: AcmeAnswer, what: string): void {
  assert(status >= 400 && status < 500, `${what}: ${status} ${text}`);
  assert.match(json?.type ?? '', /^urn:ietf:params:acme:error:\w+$/, `${what}: ${text}`);
  assert.notEqual(headers.get('Replay-Nonce'), null, what);
}

const b64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

type Body = Record<string, unknown>;

/** Signed bodies, spoiled. */
const spoiled: Readonly<Record<string, (body: Body, protectedHeader: Body) => unknown>> = {
  nothing: () => '',
  'a number': () => 1,
  null: () => null,
  'a text': () => '"x"',
  'deep lists': () => `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
  'deep objects': () => `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`,
  'half of it': (body) => JSON.stringify(body).slice(0, -20),
  'members that are lists': ({ payload, protected: head, signature }) => ({
    payload: [payload],
    protected: [head],
    signature: [signature],
  }),
  'another alg': (body, head) => ({ ...body, protected: b64({ ...head, alg: 'RS256' }) }),
  'alg none': (body, head) => ({ ...body, protected: b64({ ...head, alg: 'none' }), signature: '' }),
  'alg HS256': (body, head) => ({ ...body, protected: b64({ ...head, alg: 'HS256' }) }),
  'an alg that is a list': (body, head) => ({ ...body, protected: b64({ ...head, alg: ['ES256'] }) }),
  'no alg': (body, { alg: _, ...head }) => ({ ...body, protected: b64(head) }),
  'no url': (body, { url: _, ...head }) => ({ ...body, protected: b64(head) }),
  'another url': (body, head) => ({ ...body, protected: b64({ ...head, url: 'https://other.test/' }) }),
  'a url that is a number': (body, head) => ({ ...body, protected: b64({ ...head, url: 1 }) }),
  'no nonce': (body, { nonce: _, ...head }) => ({ ...body, protected: b64(head) }),
  'a nonce of its own': (body, head) => ({
    ...body,
    protected: b64({ ...head, nonce: b64('x'.repeat(32)) }),
  }),
  'a long nonce': (body, head) => ({ ...body, protected: b64({ ...head, nonce: 'A'.repeat(40_000) }) }),
  'a nonce with signs': (body, head) => ({ ...body, protected: b64({ ...head, nonce: '%00../' }) }),
  'kid and jwk': (body, head) => ({ ...body, protected: b64({ ...head, jwk: { kty: 'oct', k: 'AA' } }) }),
  'neither kid nor jwk': (body, { kid: _, ...head }) => ({ ...body, protected: b64(head) }),
  'a kid that is a number': (body, head) => ({ ...body, protected: b64({ ...head, kid: 7 }) }),
  'the kid of no account': (body, head) => ({
    ...body,
    protected: b64({ ...head, kid: String(head.kid).replace(/\d+$/, '999999') }),
  }),
  'a kid elsewhere': (body, head) => ({ ...body, protected: b64({ ...head, kid: 'https://other.test/1' }) }),
  crit: (body, head) => ({ ...body, protected: b64({ ...head, crit: ['exp'] }) }),
  'b64 false': (body, head) => ({ ...body, protected: b64({ ...head, b64: false, crit: ['b64'] }) }),
  'another payload': (body) => ({ ...body, payload: b64({ identifiers: [] }) }),
  'a payload that is no base64url': (body) => ({ ...body, payload: '???' }),
  'a short signature': (body) => ({ ...body, signature: 'AAAA' }),
  'a long signature': (body) => ({ ...body, signature: 'A'.repeat(40_000) }),
  'a signature of zeros': (body) => ({ ...body, signature: Buffer.alloc(64).toString('base64url') }),
  'a signature in DER': (body) => ({
    ...body,
    signature: Buffer.concat([Buffer.from('30440220', 'hex'), Buffer.alloc(66, 1)]).toString('base64url'),
  }),
};

/** Keys in the header jwk. */
const spoiledKeys: Readonly<Record<string, unknown>> = {
  'no object': 'x',
  'no type': {},
  'a secret': { kty: 'oct', k: b64('secret') },
  'a point that is not on the curve': {
    kty: 'EC',
    crv: 'P-256',
    x: b64('x'.repeat(32)),
    y: b64('y'.repeat(32)),
  },
  'a point at zero': {
    ...{ kty: 'EC', crv: 'P-256' },
    ...{ x: Buffer.alloc(32).toString('base64url'), y: Buffer.alloc(32).toString('base64url') },
  },
  'another curve': { kty: 'EC', crv: 'secp256k1', x: b64('x'.repeat(32)), y: b64('y'.repeat(32)) },
  'a short RSA key': { kty: 'RSA', n: b64('n'.repeat(64)), e: 'AQAB' },
  'a long RSA key': { kty: 'RSA', n: b64(`${'n'.repeat(8191)}o`), e: 'AQAB' },
  'an RSA key with a long exponent': { kty: 'RSA', n: b64(`${'n'.repeat(255)}o`), e: b64('e'.repeat(255)) },
  'an even exponent': { kty: 'RSA', n: b64(`${'n'.repeat(255)}o`), e: 'AQAA' },
  'members that are numbers': { kty: 'EC', crv: 1, x: 2, y: 3 },
};

suite('hostile requests', () => {
  test('with malformed signed bodies are rejected by every resource and leave no database row', async (t) => {
    const { server, client } = await opened(t);
    const { json, headers } = await client.order(['www.example.test']);
    const order = headers.get('Location') ?? '';
    const [authorization] = json.authorizations as string[];
    const places = [
      ...[client.directory.newOrder, client.directory.newAccount, client.account ?? '', order],
      ...[json.finalize, authorization ?? '', `${client.account}/orders`],
    ];
    const before = await allRows(server);
    let count = 0;
    for (const url of places) {
      for (const [what, spoil] of Object.entries(spoiled)) {
        const body = (await client.signed(url, {})) as Body;
        const head = JSON.parse(Buffer.from(String(body.protected), 'base64url').toString());
        const bad = spoil(body, head);
        assertRefused(await client.send(url, bad), `${what} at ${url}`);
        count += 1;
      }
    }
    assert.equal(count, places.length * Object.keys(spoiled).length);
    assert.deepEqual(await allRows(server), before);
    assert.equal((await client.post(order)).status, 200, 'the client itself goes on');
  });

  test('with an invalid jwk are rejected and create no account', async (t) => {
    const { server, client } = await opened(t);
    const key = await newKey();
    const before = await allRows(server);
    for (const [what, jwk] of Object.entries(spoiledKeys)) {
      const header = { alg: 'ES256', nonce: await client.nonce(), url: client.directory.newAccount, jwk };
      assertRefused(await client.send(header.url, await sign({}, header, key.privateKey)), what);
    }
    assert.deepEqual(await allRows(server), before);
  });

  test('are rejected with 413 if too large and with 415 for another content type', async (t) => {
    const { client } = await opened(t);
    const { newOrder } = client.directory;
    assertProblem(await client.send(newOrder, `{"payload":"${'A'.repeat(2_000_000)}"}`), 'malformed', 413);
    for (const type of ['application/json', 'text/plain', 'application/jose', 'multipart/form-data']) {
      assertProblem(await client.send(newOrder, await client.signed(newOrder, {}), type), 'malformed', 415);
    }
  });

  test('with unfinished bodies get 408, while an order at the same time is created', async (t) => {
    const { server, client } = await opened(t, {}, { connectionLimits: { headersMs: 200, requestMs: 400 } });
    const { pathname, host } = new URL(client.directory.newOrder);
    const start = `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/jose+json\r\nContent-Length: 500\r\n\r\n{`;
    const slow = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const socket = await open(server.url);
        socket.write(start);
        return readToEnd(socket);
      }).concat(
        (async () => ((await client.order(['www.example.test'])).status === 201 ? 'HTTP/1.1 408' : ''))(),
      ),
    );
    for (const answer of slow) assert.match(answer, /^HTTP\/1\.1 408/);
  });
});

suite('replayed nonces', () => {
  test('are accepted only once among 100 concurrent requests', async (t) => {
    const { server, client } = await opened(t);
    const { newOrder } = client.directory;
    const identifiers = [{ type: 'dns', value: 'www.example.test' }];
    const body = await client.signed(newOrder, { identifiers });
    const answers = await Promise.all(Array.from({ length: 100 }, () => client.send(newOrder, body)));
    const created = answers.filter(({ status }) => status === 201);
    assert.equal(created.length, 1);
    for (const answer of answers) if (answer.status !== 201) assertProblem(answer, 'badNonce', 400);
    assert.equal(await rows(server, 'acme_client_orders'), 1);
  });
});

suite('orders', () => {
  test('beyond 1000 open ones of a client are rejected with 429, while other clients go on', async (t) => {
    const { server, client, watch } = await opened(t);
    assert.equal((await client.order(['www.example.test'])).status, 201);
    const row = await server.vault.db.reader
      .selectFrom('acme_client_orders')
      .selectAll()
      .executeTakeFirstOrThrow();
    const { id: _, ...values } = row;
    await server.vault.db.write(async (writer) => {
      for (let count = 1; count < 1000; count += 1) await insertClientOrder(writer, values);
    });
    const [stored, nonces] = [await rows(server, 'acme_client_orders'), await rows(server, 'acme_nonces')];
    for (let count = 0; count < 50; count += 1) {
      const refused = await client.order([`a${count}.example.test`]);
      assertProblem(refused, 'rateLimited', 429);
      assert(Number(refused.headers.get('Retry-After')) > 0);
    }
    assert.equal(await rows(server, 'acme_client_orders'), stored);
    assert.equal(await rows(server, 'acme_nonces'), nonces);
    const other = await AcmeTestClient.registered(server.url, await makeAcmeClient(server.vault), { watch });
    await other.issue(['www.example.test']);
    const series = server.vault.meter.series();
    const refused = Object.entries(series).filter(([name]) => /^vault_acme_orders_total.*refused/.test(name));
    assert.deepEqual(
      refused.map(([, value]) => value),
      [50],
    );
  });

  test('reject every request of another client and stay unchanged', async (t) => {
    const { server, client, watch } = await opened(t);
    const { order, certificate } = await client.issue(['www.example.test']);
    const { json } = await client.order(['a.example.test']);
    const other = await AcmeTestClient.registered(server.url, await makeAcmeClient(server.vault), { watch });
    const [authorization] = json.authorizations as string[];
    const places = [order, json.finalize, authorization ?? '', certificate, `${authorization}x`];
    const before = await allRows(server);
    const csr = await csrFor(['a.example.test']);
    for (const url of places) {
      for (const payload of ['', {}, { csr }, { status: 'deactivated' }]) {
        assertRefused(await other.post(url, payload), `${url} ${JSON.stringify(payload).slice(0, 20)}`);
      }
    }
    assertRefused(await other.post(client.account ?? '', { status: 'deactivated' }), 'another account');
    assert.deepEqual(await allRows(server), before);
    assert.equal((await client.post(json.finalize, { csr })).json.status, 'valid');
  });

  test('are not finalized with malformed CSRs or CSRs for other names', async (t) => {
    const { server, client } = await opened(t);
    const { json } = await client.order(['www.example.test', 'a.example.test']);
    const right = await csrFor(['www.example.test', 'a.example.test']);
    const der = Buffer.from(right, 'base64url');
    const wrong: unknown[] = [
      ...[undefined, null, 7, '', 'x', [right], { csr: right }, `${right}=`, 'A'.repeat(60_000)],
      await csrFor(['www.example.test']),
      await csrFor(['www.example.test', 'a.example.test', 'b.example.test']),
      await csrFor(['*.example.test', 'a.example.test']),
      await csrFor(['www.example.test', 'vault.example.com']),
      // Each byte of the structure in turn.
      ...Array.from({ length: 60 }, (_, at) => {
        const changed = Buffer.from(der);
        const place = Math.floor((at * der.length) / 60);
        changed[place] = (changed[place] ?? 0) ^ 0xff;
        return changed.toString('base64url');
      }),
      ...Array.from({ length: 20 }, (_, at) => der.subarray(0, at * 10).toString('base64url')),
    ];
    for (const csr of wrong) {
      assertRefused(
        await client.post(json.finalize, { csr }),
        `CSR ${JSON.stringify(csr ?? null).slice(0, 40)}`,
      );
    }
    assert.equal(await rows(server, 'certificates'), 0);
    assert.equal((await client.post(json.finalize, { csr: right })).json.status, 'valid');
  });

  test('with malformed or unauthorized identifiers are rejected and leave no database row', async (t) => {
    const { server, client } = await opened(t);
    const { newOrder } = client.directory;
    const before = await allRows(server);
    const dns = (value: unknown) => ({ identifiers: [{ type: 'dns', value }] });
    const wrong: unknown[] = [
      ...[[], 'x', null, 7, {}, { identifiers: null }, { identifiers: [] }, { identifiers: {} }],
      ...[
        '',
        '.',
        '*',
        '*.',
        '..',
        'a..b',
        '-a.test',
        '*.*.test',
        'a.*.test',
        ' www.example.test',
        'a\u0000.test',
      ],
      ...[
        'x'.repeat(64),
        `${'a.'.repeat(200)}test`,
        'www.example.test/',
        'http://www.example.test',
        '127.0.0.1',
      ],
      ...['www.other.test', 'example.com', 'xn--.test', 'ünïcode.test', '[::1]', 'a'.repeat(900)],
    ].map((one) => (typeof one === 'string' && one !== 'x' ? dns(one) : one));
    wrong.push(dns(null), dns(7), dns(['www.example.test']), {
      identifiers: [{ type: 'email', value: 'a@b.test' }],
    });
    wrong.push({
      identifiers: Array.from({ length: 1001 }, (_, at) => dns(`a${at}.example.test`).identifiers[0]),
    });
    wrong.push({
      identifiers: Array.from({ length: 101 }, (_, at) => dns(`a${at}.example.test`).identifiers[0]),
    });
    for (const payload of wrong) {
      assertRefused(await client.post(newOrder, payload), JSON.stringify(payload)?.slice(0, 60) ?? 'nothing');
    }
    assert.deepEqual(await allRows(server), before);
  });
});
