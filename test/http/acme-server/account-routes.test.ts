/** Accounts over HTTP: bound to an ACME client, found by their key, updated, deactivated, and given another key. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { rotateAcmeClient } from '../../../src/domain/acme-server/clients/acme-clients.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import {
  AcmeTestClient,
  assertProblem,
  bindingFor,
  type ExternalAccount,
  makeAcmeClient,
  newKey,
  sign,
} from '../../harness/acme/server-client.ts';
import { addStagingCa } from '../../harness/ca/private-ca-fixtures.ts';
import { apiChecker } from '../../harness/http/api-checker.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';

async function opened(t: TestContext, others: Readonly<Record<string, unknown>> = {}) {
  const server = await checkedServer(t);
  const watch = apiChecker(server.document);
  const external = await makeAcmeClient(server.vault, others);
  const client = await AcmeTestClient.at(server.url, { watch });
  return { server, watch, external, client };
}

type BindingCase = (
  client: AcmeTestClient,
  external: ExternalAccount,
) => Promise<{ readonly binding: unknown; readonly type: string; readonly detail?: RegExp }>;

const unauthorized = /no ACME client with this kid, or its HMAC key is another one/;

const bindings: Readonly<Record<string, BindingCase>> = {
  'is missing': async () => ({ binding: undefined, type: 'externalAccountRequired' }),
  'is not a JWS': async () => ({ binding: 'eab', type: 'malformed' }),
  'has an unknown kid': async ({ key, directory }, external) => ({
    binding: await bindingFor(key.jwk, directory.newAccount, { ...external, kid: 'unknown' }),
    ...{ type: 'unauthorized', detail: unauthorized },
  }),
  'is signed with another MAC key': async ({ key, directory }, external) => ({
    binding: await bindingFor(key.jwk, directory.newAccount, { ...external, hmacKey: Buffer.alloc(32, 7) }),
    ...{ type: 'unauthorized', detail: unauthorized },
  }),
  'has a changed MAC': async ({ key, directory }, external) => ({
    binding: { ...(await bindingFor(key.jwk, directory.newAccount, external)), signature: 'AAAA' },
    ...{ type: 'unauthorized', detail: unauthorized },
  }),
  'is for another URL': async ({ key, directory }, external) => ({
    binding: await bindingFor(key.jwk, directory.newOrder, external),
    type: 'malformed',
  }),
  'is for another key': async ({ directory }, external) => ({
    binding: await bindingFor((await newKey()).jwk, directory.newAccount, external),
    type: 'malformed',
  }),
  'has a payload that is not a key': async ({ directory }, { kid, hmacKey }) => ({
    binding: await sign([], { alg: 'HS256', kid, url: directory.newAccount }, new Uint8Array(hmacKey)),
    type: 'malformed',
  }),
  'has a nonce': async ({ key, directory }, { kid, hmacKey }) => ({
    binding: await sign(
      key.jwk,
      { alg: 'HS256', kid, url: directory.newAccount, nonce: 'x' },
      new Uint8Array(hmacKey),
    ),
    type: 'malformed',
  }),
  'has jwk in place of kid': async ({ key, directory }) => ({
    binding: await sign(key.jwk, { alg: key.alg, jwk: key.jwk, url: directory.newAccount }, key.privateKey),
    type: 'badSignatureAlgorithm',
  }),
  'is signed by the account': async ({ key, directory }, { kid }) => ({
    binding: await sign(key.jwk, { alg: key.alg, kid, url: directory.newAccount }, key.privateKey),
    type: 'badSignatureAlgorithm',
  }),
};

suite('a new account', () => {
  test('is bound to its ACME client with each MAC algorithm and each key type', async (t) => {
    const { server, watch, external } = await opened(t);
    for (const [alg, mac] of [
      ['ES256', 'HS256'],
      ['ES384', 'HS384'],
      ['RS256', 'HS512'],
      ['EdDSA', 'HS256'],
    ] as const) {
      const client = await AcmeTestClient.at(server.url, { key: await newKey(alg), watch });
      const externalAccountBinding = await bindingFor(
        client.key.jwk,
        client.directory.newAccount,
        external,
        mac,
      );
      const contact = [`mailto:${alg.toLowerCase()}@example.test`];
      const answer = await client.post(
        client.directory.newAccount,
        { externalAccountBinding, contact },
        { withJwk: true },
      );
      assert.equal(answer.status, 201, answer.text);
      assert.deepEqual([answer.json.status, answer.json.contact], ['valid', contact]);
      client.account = answer.headers.get('Location') ?? '';
      assert.equal(answer.json.orders, `${client.account}/orders`);
      assert.equal((await client.post(client.account)).status, 200);
    }
    const created = eventsOf(server.dataDir, 'acme_client.account_create');
    assert.equal(created.length, 4);
    assert.equal(created[0]?.actor, `acme-client:${external.id}:${external.name}`);
  });

  for (const [what, makeCase] of Object.entries(bindings)) {
    test(`is rejected if its external account binding ${what}`, async (t) => {
      const { server, client, external } = await opened(t);
      const { binding, type, detail = /./ } = await makeCase(client, external);
      const payload = { ...(binding !== undefined && { externalAccountBinding: binding }) };
      const answer = await client.post(client.directory.newAccount, payload, { withJwk: true });
      assert.match(assertProblem(answer, type), detail);
      assert.deepEqual(eventsOf(server.dataDir, 'acme_client.account_create'), []);
    });
  }

  test('is not created with onlyReturnExisting or for a known key, which returns the existing account with 200', async (t) => {
    const { client, external } = await opened(t);
    const { newAccount } = client.directory;
    const search = () => client.post(newAccount, { onlyReturnExisting: true }, { withJwk: true });
    assertProblem(await search(), 'accountDoesNotExist', 400);
    assert.equal((await client.register(external)).status, 201);
    for (const answer of [await search(), await client.post(newAccount, {}, { withJwk: true })]) {
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('Location'), client.account);
    }
    assertProblem(await client.post(newAccount, { onlyReturnExisting: true }), 'malformed', 400);
  });

  test('is created once by three concurrent requests', async (t) => {
    const { client, external } = await opened(t);
    const externalAccountBinding = await bindingFor(client.key.jwk, client.directory.newAccount, external);
    const answers = await Promise.all(
      [1, 2, 3].map(() =>
        client.post(client.directory.newAccount, { externalAccountBinding }, { withJwk: true }),
      ),
    );
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 200, 201]);
    assert.equal(new Set(answers.map(({ headers }) => headers.get('Location'))).size, 1);
  });

  test('needs the current HMAC key of its client after a rotation, while existing accounts stay valid', async (t) => {
    const { server, client, external, watch } = await opened(t);
    await client.register(external);
    const { key } = await rotateAcmeClient(server.vault, localCli, external.id);
    const another = await AcmeTestClient.at(server.url, { watch });
    assertProblem(await another.register(external), 'unauthorized', 403);
    const rotated = { kid: key.kid, hmacKey: Buffer.from(key.hmacKey.expose()) };
    assert.equal((await another.register(rotated)).status, 201);
    assert.equal((await client.post(client.account ?? '')).status, 200);
  });

  test('is rejected with 429, as is an order, once its client exceeds the change limit, while reads and other clients go on', async (t) => {
    const server = await checkedServer(t);
    const external = await makeAcmeClient(server.vault);
    const client = await AcmeTestClient.registered(server.url, external);
    const other = await AcmeTestClient.at(server.url);
    const { keyLimits } = server.context;
    while (keyLimits.changeExcessOf(external.id) === undefined);
    for (const refused of [await other.register(external), await client.order(['www.example.test'])]) {
      assert.match(assertProblem(refused, 'rateLimited', 429), /Too many requests of this ACME client/);
      assert.equal(refused.headers.get('Retry-After'), '1');
    }
    assert.equal((await client.post(client.account ?? '')).status, 200, 'it still reads');
    assert.equal(eventsOf(server.dataDir, 'acme_client.account_create').length, 1);
    assert.equal(eventsOf(server.dataDir, 'access.refuse').length, 1);
    const unconcerned = await AcmeTestClient.at(server.url);
    assert.equal((await unconcerned.register(await makeAcmeClient(server.vault))).status, 201);
  });

  test('is rejected beyond 10,000 accounts of its client, also concurrently and with deactivated ones, while existing accounts and other clients go on', async (t) => {
    const server = await checkedServer(t);
    const { vault } = server;
    const external = await makeAcmeClient(vault);
    const client = await AcmeTestClient.registered(server.url, external);
    const { id: _, ...own } = await vault.db.reader
      .selectFrom('acme_client_accounts')
      .selectAll()
      .executeTakeFirstOrThrow();
    const accounts = Array.from({ length: 9997 }, (_, at) => ({
      ...{ ...own, thumbprint: `past ${at}`, tag: null },
      status: at < 5000 ? ('deactivated' as const) : ('valid' as const),
    }));
    await vault.db.write(async (writer) => {
      while (accounts.length > 0)
        await writer.insertInto('acme_client_accounts').values(accounts.splice(0, 500)).execute();
    });
    const others = await Promise.all(Array.from({ length: 6 }, () => AcmeTestClient.at(server.url)));
    const answers = await Promise.all(others.map((other) => other.register(external)));
    const refused = answers.filter(({ status }) => status !== 201);
    assert.equal(refused.length, 4);
    for (const answer of refused) {
      assert.equal(
        assertProblem(answer, 'rateLimited', 429),
        `ACME client ${external.id} (${external.name}) has 10000 accounts, deactivated ones included, and may have no more. Let programs keep the keys of their accounts, and create another client with "vault acme-client create".`,
      );
      assert.equal(answer.headers.get('Retry-After'), '3600');
    }
    assert.equal(eventsOf(server.dataDir, 'acme_client.account_create').length, 3);
    const [event] = eventsOf(server.dataDir, 'access.refuse');
    assert.equal(event?.actor, `acme-client:${external.id}:${external.name}`);
    assert.equal((await client.register(external)).status, 200, 'it finds its account');
    await client.issue(['www.example.test']);
    const unconcerned = await AcmeTestClient.at(server.url);
    assert.equal((await unconcerned.register(await makeAcmeClient(vault))).status, 201);
  });

  test('must agree to the terms of service if they are configured', async (t) => {
    const termsOfService = 'https://ca.example.test/terms';
    const server = await checkedServer(t, { termsOfService });
    const directory = (await (await server.get('/acme/local-ca/directory')).json()) as { meta: object };
    assert.deepEqual(directory.meta, { termsOfService, externalAccountRequired: true });
    const external = await makeAcmeClient(server.vault);
    const client = await AcmeTestClient.at(server.url);
    for (const termsOfServiceAgreed of [undefined, false]) {
      const refused = await client.register(external, { termsOfServiceAgreed });
      assert.match(assertProblem(refused, 'malformed', 400), /https:\/\/ca\.example\.test\/terms/);
    }
    assert.equal((await client.register(external)).status, 201);
    const found = await client.register(external, { termsOfServiceAgreed: undefined });
    assert.equal(found.status, 200, 'one that exists has agreed');
  });

  test('is valid only in the directory of its issuer, and only if its client may use that issuer', async (t) => {
    const { server, watch } = await opened(t);
    await addStagingCa(server.vault);
    const external = await makeAcmeClient(server.vault, { issuers: ['local-ca', 'staging-ca'] });
    const client = await AcmeTestClient.registered(server.url, external, { watch });
    const other = await AcmeTestClient.at(server.url, { issuer: 'staging-ca', key: client.key, watch });
    other.account = client.account;
    assertProblem(await other.order(['www.example.test']), 'accountDoesNotExist', 400);
    assert.equal((await other.register(external)).status, 201);
    const confined = await makeAcmeClient(server.vault);
    const stranger = await AcmeTestClient.at(server.url, { issuer: 'staging-ca', watch });
    assert.match(
      assertProblem(await stranger.register(confined), 'unauthorized', 403),
      /may not use issuer staging-ca/,
    );
  });
});

suite('an account', () => {
  test('updates its contacts, ignores unknown members, and rejects unsupported contacts and statuses', async (t) => {
    const { server, client, external } = await opened(t);
    await client.register(external, { contact: ['mailto:a@example.test'] });
    const url = client.account ?? '';
    const changed = await client.post(url, {
      contact: ['mailto:b@example.test'],
      x: 1,
      termsOfServiceAgreed: true,
    });
    assert.deepEqual(changed.json.contact, ['mailto:b@example.test']);
    assert.deepEqual((await client.post(url)).json, changed.json);
    assert.deepEqual((await client.post(url, {})).json, changed.json);
    assertProblem(await client.post(url, { contact: ['tel:1'] }), 'unsupportedContact', 400);
    assertProblem(await client.post(url, { status: 'revoked' }), 'malformed', 400);
    assert.equal(eventsOf(server.dataDir, 'acme_client.account_update').length, 1);
  });

  test('is rejected with 401 once deactivated, also when its key registers again', async (t) => {
    const { server, client, external } = await opened(t);
    await client.register(external);
    const url = client.account ?? '';
    const answer = await client.post(url, { status: 'deactivated' });
    assert.equal(answer.json.status, 'deactivated', answer.text);
    assertProblem(await client.post(url), 'unauthorized', 401);
    assertProblem(await client.order(['www.example.test']), 'unauthorized', 401);
    assertProblem(await client.register(external), 'unauthorized', 401);
    assert.equal(eventsOf(server.dataDir, 'acme_client.account_deactivate').length, 1);
  });

  test('gets the same 404 for accounts of others and for missing ones', async (t) => {
    const { server, client, external, watch } = await opened(t);
    await client.register(external);
    const other = await AcmeTestClient.registered(server.url, external, { watch });
    const missing = (client.account ?? '').replace(/\d+$/, '999');
    const answers = [];
    for (const url of [other.account ?? '', missing]) {
      for (const path of ['', '/orders']) answers.push(await client.post(`${url}${path}`));
    }
    for (const answer of answers) assertProblem(answer, 'malformed', 404);
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
  });
});
