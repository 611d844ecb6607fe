/** Endpoints over HTTP: who may do what, what is rejected, what is recorded, and what lists show. */
import assert from 'node:assert/strict';
import { before, suite, type TestContext, test } from 'node:test';
import type { Role } from '../../../src/base/role.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { maxEndpoints } from '../../../src/domain/endpoints/endpoint-changes.ts';
import type { EndpointView } from '../../../src/domain/endpoints/endpoints.ts';
import { makeChain } from '../../harness/ca/private-chain.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { tlsServer } from '../../harness/endpoints/tls-servers.ts';
import { identityIn } from '../../harness/endpoints/vault-endpoints.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { copyRows } from './filled-tables.ts';

let rootPem: string;
before(async () => {
  rootPem = encodePem('CERTIFICATE', (await makeChain()).root.certificate);
});

type Reply = {
  readonly status: number;
  readonly body: EndpointView & { code: string; detail: string; errors: { path: string; message: string }[] };
  readonly link: string | null;
};

/** Certificates of two teams, and people of whom one may only see and change what belongs to a team. */
async function teams(t: TestContext) {
  const server = await checkedServer(t, {
    administrators: { admin: 'ada', web: 'olga', viewer: 'vera', operator: 'otto' },
    roles: { olga: 'operator', vera: 'viewer', otto: 'operator' },
    reaches: { olga: ['team=web'] },
  });
  const { vault, world, dataDir } = server;
  await makeCertificate(vault, 'shop', ['shop.example.test', 'www.example.test'], { labels: ['team=web'] });
  await makeCertificate(vault, 'ledger', ['*.ledger.example.test'], { labels: ['team=db'] });
  const ask = async (method: string, path: string, body?: unknown, token = 'admin'): Promise<Reply> => {
    const response = await server.get(`/api/v1/endpoints${path}`, undefined, {
      method,
      headers: {
        ...{ Cookie: `vault_session=${token}`, 'Sec-Fetch-Site': 'same-origin' },
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      body: text === '' ? undefined : JSON.parse(text),
      link: response.headers.get('link'),
    };
  };
  const add = async (body: object, token = 'admin'): Promise<EndpointView> => {
    const reply = await ask('POST', '', body, token);
    assert.equal(reply.status, 201, JSON.stringify(reply.body));
    return reply.body;
  };
  const list = async (query = '', token = 'admin'): Promise<readonly EndpointView[]> => {
    const { status, body } = await ask('GET', query, undefined, token);
    assert.equal(status, 200, JSON.stringify(body));
    return body as unknown as EndpointView[];
  };
  const refused = async (...request: Parameters<typeof ask>) => {
    const { status, body } = await ask(...request);
    return [status, body.code];
  };
  const events = (action: string) => eventsOf(dataDir, `endpoint.${action}`);
  return { server, vault, world, ask, add, list, refused, events };
}

const addresses = (shown: readonly EndpointView[]) => shown.map(({ address }) => address);

suite('an endpoint', () => {
  test('is added with default values, is due, and is shown to everyone who may read', async (t) => {
    const { ask, add, list, events } = await teams(t);
    const added = await add({ address: 'shop.example.test', certificate: 'shop' });
    const unseen = {
      ...{ version: null, outdated_since: null, fingerprint_sha256: null, issuer: null, names: [] },
      ...{ not_before: null, not_after: null, tls_version: null, chain_complete: null, verifies: null },
      ...{ ocsp_stapled: null, error: null, checked_at: null, changed_at: null },
    };
    assert.deepEqual(added, {
      ...{ ...unseen, id: 1, address: 'shop.example.test:443', certificate: 'shop' },
      ...{ server_name: 'shop.example.test', starttls: null, trust: 'auto', ca_subjects: [], interval: '1h' },
      ...{ state: 'unchecked', reason: 'not checked yet', current_version: 1 },
      ...{ created_at: '2026-11-21T12:00:00Z', next_check_at: '2026-11-21T12:00:00Z' },
    });
    for (const token of ['admin', 'viewer', 'operator', 'web']) {
      assert.deepEqual((await ask('GET', '/1', undefined, token)).body, added, token);
      assert.deepEqual(await list('', token), [added], token);
    }
    const [{ actor, resource, detail } = assert.fail(), ...others] = events('create');
    assert.deepEqual(others, []);
    assert.deepEqual([actor, resource], ['admin:ada', 'endpoint:shop.example.test:443']);
    assert.deepEqual(detail, {
      ...{ id: 1, address: 'shop.example.test:443', certificate: 'shop', server_name: 'shop.example.test' },
      ...{ starttls: null, trust: 'auto', interval: '1h' },
    });
  });

  const names: readonly (readonly [address: string, certificate: string | null, name: string])[] = [
    ['www.example.test', 'shop', 'www.example.test'],
    ['10.0.0.1', 'shop', 'shop.example.test'],
    ['proxy.example.test', 'shop', 'shop.example.test'],
    ['a.ledger.example.test', 'ledger', 'a.ledger.example.test'],
    ['a.b.ledger.example.test', 'ledger', 'a.b.ledger.example.test'],
    ['10.0.0.2', 'ledger', ''],
    ['other.example.test', null, 'other.example.test'],
    ['[2001:db8::1]:8443', null, ''],
  ];
  test('gets a server name that fits its host or its certificate', async (t) => {
    const { add } = await teams(t);
    for (const [address, certificate, name] of names) {
      assert.equal((await add({ address, certificate })).server_name, name, address);
    }
  });

  test('of a protocol with STARTTLS has the port of the protocol, which a change of it follows only with the address', async (t) => {
    const { ask, add } = await teams(t);
    assert.equal((await add({ address: 'mx.example.test', starttls: 'smtp' })).address, 'mx.example.test:25');
    const { body } = await ask('PATCH', '/1', { starttls: 'imap' });
    assert.deepEqual([body.address, body.starttls], ['mx.example.test:25', 'imap']);
    const moved = await ask('PATCH', '/1', { address: 'mx.example.test' });
    assert.equal(moved.body.address, 'mx.example.test:143');
  });

  test('with a bundle shows the subjects of its certificates, and the event only that it is one', async (t) => {
    const { ask, add, events } = await teams(t);
    const { trust, ca_subjects } = await add({ address: 'a.example.test', ca_pem: rootPem.repeat(30) });
    assert.deepEqual([trust, ca_subjects], ['bundle', Array(20).fill('CN=Test Root')]);
    assert.doesNotMatch(JSON.stringify(events('create')), /BEGIN CERTIFICATE/);
    const auto = await ask('PATCH', '/1', { ca_pem: null });
    assert.deepEqual([auto.body.trust, auto.body.ca_subjects], ['auto', []]);
    const again = await ask('PATCH', '/1', { trust: 'public' });
    assert.equal(again.body.trust, 'public');
  });

  test('is the only one with its address and server name, but not with another name', async (t) => {
    const { ask, add, refused } = await teams(t);
    await add({ address: 'shop.example.test', certificate: 'shop' });
    await add({ address: 'shop.example.test', server_name: '' });
    const { status, body } = await ask('POST', '', { address: 'SHOP.example.test:443' });
    assert.deepEqual([status, body.code], [409, 'endpoint_exists']);
    assert.equal(
      body.detail,
      'There is already an endpoint shop.example.test:443 with the server name shop.example.test. Try: vault endpoint list',
    );
    assert.deepEqual(await refused('PATCH', '/2', { server_name: 'shop.example.test' }), [
      409,
      'endpoint_exists',
    ]);
    assert.equal((await ask('PATCH', '/2', { server_name: '', interval: '2h' })).status, 200);
  });

  const invalid: readonly (readonly [body: unknown, path: string])[] = [
    [{}, 'address'],
    [{ address: 'https://a.example.test' }, 'address'],
    [{ address: 'a.example.test', interval: '1m' }, 'interval'],
    [{ address: 'a.example.test', starttls: 'http' }, 'starttls'],
    [{ address: 'a.example.test', server_name: '10.0.0.1' }, 'server_name'],
    [{ address: 'a.example.test', ca_pem: 'x' }, 'ca_pem'],
    [{ address: 'a.example.test', trust: 'bundle' }, 'trust'],
    [{ address: 'a.example.test', certificate: '../x' }, 'certificate'],
    [{ address: 'a.example.test', port: 443 }, ''],
  ];
  test('with something invalid is rejected, which tells where, and nothing is stored', async (t) => {
    const { ask, list, refused } = await teams(t);
    for (const [input, path] of invalid) {
      const { status, body } = await ask('POST', '', input);
      assert.deepEqual([status, body.code], [400, 'invalid_request'], JSON.stringify(input));
      assert.match(JSON.stringify(body.errors), new RegExp(path), JSON.stringify(input));
    }
    for (const input of ['{', '[]', '""']) assert.equal((await ask('POST', '', input)).status, 400);
    const unknown = { address: 'a.example.test', certificate: 'missing' };
    assert.deepEqual(await refused('POST', '', unknown), [404, 'certificate_not_found']);
    const large = { address: 'a.example.test', ca_pem: 'x'.repeat(524_288) };
    assert.deepEqual(await refused('POST', '', large), [413, 'payload_too_large']);
    assert.deepEqual(await list(), []);
  });

  test('beyond the maximum of a vault is rejected, until one is removed', async (t) => {
    const { server, add, ask, refused } = await teams(t);
    await add({ address: 'a.example.test' });
    outside(server.dataDir, (db) => copyRows(db, 'endpoints', maxEndpoints - 1, { port: 'n + 1000' }));
    const next = { address: 'b.example.test' };
    assert.deepEqual(await refused('POST', '', next), [409, 'too_many_endpoints']);
    assert.equal((await ask('DELETE', '/1')).status, 204);
    await add(next);
  });

  test('is due after a change and forgets what was served, with one event of what differs', async (t) => {
    const { vault, world, ask, add, events } = await teams(t);
    const { port } = await tlsServer(t, await identityIn(vault, 'shop'));
    await add({ address: `127.0.0.1:${port}`, certificate: 'shop' });
    assert.equal((await ask('POST', '/1/check')).body.state, 'current');
    world.advance(1000);
    const { body } = await ask('PATCH', '/1', { server_name: 'www.example.test' });
    assert.deepEqual([body.state, body.fingerprint_sha256, body.checked_at], ['unchecked', null, null]);
    assert.equal(body.next_check_at, '2026-11-21T12:00:01Z');
    const [{ detail } = assert.fail(), ...others] = events('update');
    assert.deepEqual(others, []);
    assert.deepEqual(detail, {
      ...{ id: 1, server_name: 'www.example.test' },
      previous: { server_name: 'shop.example.test' },
    });
  });

  test('keeps what was served when its interval changes, and is due no later than before', async (t) => {
    const { vault, ask, add } = await teams(t);
    const { port } = await tlsServer(t, await identityIn(vault, 'shop'));
    await add({ address: `127.0.0.1:${port}`, certificate: 'shop', interval: '30d' });
    await ask('POST', '/1/check');
    const shorter = (await ask('PATCH', '/1', { interval: '5m' })).body;
    assert.deepEqual([shorter.state, shorter.next_check_at], ['current', '2026-11-21T12:05:00Z']);
    const longer = (await ask('PATCH', '/1', { interval: '30d' })).body;
    assert.deepEqual([longer.interval, longer.next_check_at], ['30d', '2026-11-21T12:05:00Z']);
  });

  test('stays as it is and adds no event when nothing differs', async (t) => {
    const { ask, add, events } = await teams(t);
    const added = await add({ address: 'a.example.test', ca_pem: rootPem });
    for (const body of [{}, { interval: '1h' }, { address: 'A.example.test:443' }, { ca_pem: rootPem }]) {
      assert.deepEqual((await ask('PATCH', '/1', body)).body, added);
    }
    assert.deepEqual(events('update'), []);
  });

  test('is gone after its removal with one event, and its number is not used again', async (t) => {
    const { ask, add, refused, events } = await teams(t);
    await add({ address: 'a.example.test', server_name: '' });
    assert.equal((await ask('DELETE', '/1')).status, 204);
    const [{ resource, detail } = assert.fail()] = events('delete');
    assert.deepEqual(
      [resource, detail.id, detail.address],
      ['endpoint:a.example.test:443', 1, 'a.example.test:443'],
    );
    assert.equal((await add({ address: 'a.example.test', server_name: '' })).id, 2);
    for (const [method, path] of [
      ['GET', '/1'],
      ['PATCH', '/1'],
      ['DELETE', '/1'],
      ['POST', '/1/check'],
    ] as const) {
      const body = method === 'PATCH' ? {} : undefined;
      assert.deepEqual(await refused(method, path, body), [404, 'endpoint_not_found'], `${method} ${path}`);
    }
  });

  test('with an invalid number does not exist', async (t) => {
    const { ask } = await teams(t);
    for (const id of ['0', '-1', 'x', '1.0', '9007199254740993', '%00']) {
      const { status } = await ask('GET', `/${id}`);
      assert(status === 404 || status === 400, `${id}: ${status}`);
    }
  });

  test('is checked while the caller waits, and a failure is a reason and not an error', async (t) => {
    const { vault, ask, add } = await teams(t);
    const server = await tlsServer(t, await identityIn(vault, 'shop'));
    await add({ address: `127.0.0.1:${server.port}`, certificate: 'shop' });
    const found = await ask('POST', '/1/check', undefined, 'web');
    assert.deepEqual([found.status, found.body.state, found.body.version], [200, 'current', 1]);
    server.stop();
    const failed = await ask('POST', '/1/check');
    assert.equal(failed.status, 200);
    assert.match(failed.body.error ?? '', /refused/);
  });
});

suite('the list of endpoints', () => {
  async function several(t: TestContext) {
    const made = await teams(t);
    const { vault, ask, add } = made;
    const { port } = await tlsServer(t, await identityIn(vault, 'shop'));
    await add({ address: `127.0.0.1:${port}`, certificate: 'shop' });
    await add({ address: '127.0.0.1:1', certificate: 'ledger' });
    await add({ address: 'a.example.test' });
    await add({ address: 'b.example.test', certificate: 'shop' });
    for (const id of [1, 2]) await ask('POST', `/${id}/check`);
    return {
      ...made,
      ids: async (...query: Parameters<typeof made.list>) => (await made.list(...query)).map(({ id }) => id),
    };
  }

  test('has with each filter what fits', async (t) => {
    const { ids } = await several(t);
    for (const [query, expected] of [
      ['', [1, 2, 3, 4]],
      ['?state=current', [1]],
      ['?state=unreachable', [2]],
      ['?state=unchecked', [3, 4]],
      ['?state=outdated', []],
      ['?certificate=shop', [1, 4]],
      ['?certificate=shop&state=unchecked', [4]],
      ['?label=team%3Dweb', [1, 4]],
      ['?label=team%3Ddb&state=unreachable', [2]],
      ['?label=team%3Dnone', []],
      ['?after=2', [3, 4]],
      ['?limit=2&after=1', [2, 3]],
    ] as const) {
      assert.deepEqual(await ids(query), expected, query);
    }
  });

  test('rejects filters that mean nothing', async (t) => {
    const { ask, refused } = await several(t);
    for (const query of ['?state=broken', '?limit=0', '?limit=x', '?after=0', '?x=1']) {
      assert.equal((await ask('GET', query)).status, 400, query);
    }
    assert.deepEqual(await refused('GET', '?certificate=missing'), [404, 'certificate_not_found']);
  });

  test('keeps its filters on the next pages', async (t) => {
    const { ask, list } = await several(t);
    const { link } = await ask('GET', '?state=unchecked&limit=1');
    const [, next = assert.fail()] = /<([^>]+)>; rel="next"/.exec(link ?? '') ?? [];
    const { search } = new URL(next);
    assert.deepEqual(addresses(await list(search)), ['b.example.test:443']);
    assert.equal((await ask('GET', search)).link, null);
  });

  test('finds the last of a thousand that match, in the same order on every page', async (t) => {
    const { server, list } = await several(t);
    outside(server.dataDir, (db) => copyRows(db, 'endpoints', 1200, { port: 'n + 1', failures: 'n % 3' }));
    const seen: number[] = [];
    for (let query = '?state=unreachable&limit=100'; ; ) {
      const shown = await list(query);
      seen.push(...shown.map(({ id }) => id));
      if (shown.length < 100) break;
      query = `?state=unreachable&limit=100&after=${seen.at(-1)}`;
    }
    assert.equal(seen.length, 401);
    assert.deepEqual(
      seen,
      seen.toSorted((a, b) => a - b),
    );
  });
});

suite('the reach of an operator', () => {
  test('is endpoints of certificates with its label: all others, and those without one, are forbidden', async (t) => {
    const { add, list, refused, ask, events, server } = await teams(t);
    const own = await add({ address: 'a.example.test', certificate: 'shop' }, 'web');
    const foreign = await add({ address: 'b.example.test', certificate: 'ledger' });
    const free = await add({ address: 'c.example.test' });
    assert.deepEqual(await list('', 'web'), [own]);
    assert.deepEqual(await refused('GET', '?certificate=ledger', undefined, 'web'), [403, 'forbidden']);
    for (const { id } of [foreign, free]) {
      assert.deepEqual(await refused('GET', `/${id}`, undefined, 'web'), [403, 'forbidden']);
      assert.deepEqual(await refused('PATCH', `/${id}`, { interval: '2h' }, 'web'), [403, 'forbidden']);
      assert.deepEqual(await refused('DELETE', `/${id}`, undefined, 'web'), [403, 'forbidden']);
      assert.deepEqual(await refused('POST', `/${id}/check`, undefined, 'web'), [403, 'forbidden']);
    }
    // Neither into nor out of its reach.
    for (const certificate of ['ledger', null]) {
      assert.deepEqual(await refused('POST', '', { address: 'd.example.test', certificate }, 'web'), [
        403,
        'forbidden',
      ]);
      assert.deepEqual(await refused('PATCH', `/${own.id}`, { certificate }, 'web'), [403, 'forbidden']);
    }
    assert.deepEqual(await refused('POST', '', { address: 'd.example.test' }, 'web'), [403, 'forbidden']);
    assert.equal((await ask('PATCH', `/${own.id}`, { interval: '2h' }, 'web')).status, 200);
    assert.equal((await ask('DELETE', `/${own.id}`, undefined, 'web')).status, 204);
    assert.deepEqual(addresses(await list()), ['b.example.test:443', 'c.example.test:443']);
    assert.equal(events('update').length, 1);
    assert(eventsOf(server.dataDir, 'access.refuse').length > 0);
  });

  test('does not grow by a label that was written into the database', async (t) => {
    const { server, add, list } = await teams(t);
    await add({ address: 'b.example.test', certificate: 'ledger' });
    outside(server.dataDir, (db) =>
      db.exec(`insert into object_labels (kind, label, object_id)
        select 'certificate', 'team=web', id from certificates where name = 'ledger'`),
    );
    assert.deepEqual(await list('', 'web'), []);
  });
});

suite('the role of a caller', () => {
  const allowed: Readonly<Record<string, readonly [method: string, path: string, body?: object]>> = {
    'add an endpoint': ['POST', '', { address: 'z.example.test' }],
    'change an endpoint': ['PATCH', '/1', { interval: '2h' }],
    'check an endpoint': ['POST', '/1/check'],
    'remove an endpoint': ['DELETE', '/1'],
  };
  test('of a viewer is not enough to change anything, that of an operator is', async (t) => {
    const { add, ask, refused } = await teams(t);
    await add({ address: '127.0.0.1:1' });
    for (const [what, [method, path, body]] of Object.entries(allowed)) {
      assert.deepEqual(await refused(method, path, body, 'viewer'), [403, 'forbidden'], what);
      const { status } = await ask(method, path, body, 'operator');
      assert(status < 300, `${what}: ${status}`);
    }
  });

  test('decides about API keys, which need one to see any endpoint', async (t) => {
    const { server, vault, add } = await teams(t);
    await add({ address: 'a.example.test' });
    const status = async (role?: Role) => {
      const { raw } = await makeKey(vault, { scopes: ['certificates:read'], ...(role && { role }) });
      const read = await server.get('/api/v1/endpoints', raw);
      const write = await server.get('/api/v1/endpoints/1', raw, { method: 'DELETE' });
      return [read.status, write.status];
    };
    assert.deepEqual(await status(), [403, 403]);
    assert.deepEqual(await status('viewer'), [200, 403]);
    assert.deepEqual(await status('operator'), [200, 204]);
    assert.equal((await server.get('/api/v1/endpoints')).status, 403);
  });
});
