/**
 * Another key for an account (RFC 8555 §7.3.5): every part of the message is checked, and the former key is worthless
 * afterwards.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import {
  AcmeTestClient,
  assertProblem,
  type KeyPair,
  makeAcmeClient,
  newKey,
  sign,
} from '../../harness/acme/server-client.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { testedEngine } from '../../harness/database/tested-engine.ts';
import { apiChecker } from '../../harness/http/api-checker.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';

async function opened(t: TestContext) {
  const server = await checkedServer(t);
  const watch = apiChecker(server.document);
  const external = await makeAcmeClient(server.vault);
  return {
    server,
    watch,
    external,
    client: await AcmeTestClient.registered(server.url, external, { watch }),
  };
}

type Changes = {
  readonly payload?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly signer?: KeyPair;
};

/** The message in which the new key takes over an account, with changes. */
async function takeover(
  { account, key, directory }: AcmeTestClient,
  next: KeyPair,
  { payload = {}, header = {}, signer = next }: Changes = {},
) {
  return sign(
    { account, oldKey: key.jwk, ...payload },
    { alg: next.alg, jwk: next.jwk, url: directory.keyChange, ...header },
    signer.privateKey,
  );
}

const next = await newKey('ES384');
const other = await newKey();

const wrong: Readonly<Record<string, readonly [type: string, changes: Changes]>> = {
  'another account': ['malformed', { payload: { account: 'http://vault.test/acme/local-ca/account/1' } }],
  'no account': ['malformed', { payload: { account: undefined } }],
  'another old key': ['malformed', { payload: { oldKey: other.jwk } }],
  'no old key': ['malformed', { payload: { oldKey: undefined } }],
  'another URL': ['malformed', { header: { url: 'http://vault.test/acme/local-ca/key-change' } }],
  'a nonce': ['malformed', { header: { nonce: 'x' } }],
  'kid in place of jwk': ['malformed', { header: { jwk: undefined, kid: 'x' } }],
  'the signature of another key': ['malformed', { signer: await newKey('ES384') }],
  'an algorithm that does not match its key': [
    'badSignatureAlgorithm',
    { header: { alg: 'ES256' }, signer: other },
  ],
  'a key of an unknown type': ['badPublicKey', { header: { jwk: { kty: 'PQ' } } }],
};

suite('the key of an account', () => {
  test('is replaced, and then only the new one is accepted', async (t) => {
    const { server, client } = await opened(t);
    const { account } = client;
    const answer = await client.post(client.directory.keyChange, await takeover(client, next));
    assert.equal(answer.status, 200, answer.text);
    assertProblem(await client.post(account ?? ''), 'badSignatureAlgorithm', 400);
    const former = client.key;
    client.key = next;
    assert.equal((await client.post(account ?? '')).status, 200);
    const found = await client.post(
      client.directory.newAccount,
      { onlyReturnExisting: true },
      { withJwk: true },
    );
    assert.equal(found.headers.get('Location'), account);
    const search = { withJwk: true, key: former };
    const gone = await client.post(client.directory.newAccount, { onlyReturnExisting: true }, search);
    assertProblem(gone, 'accountDoesNotExist', 400);
    const [event] = eventsOf(server.dataDir, 'acme_client.account_key_change');
    assert.equal(event?.detail.thumbprint, await client.thumbprint());
  });

  for (const [what, [type, changes]] of Object.entries(wrong)) {
    test(`is not replaced by a message with ${what}`, async (t) => {
      const { server, client } = await opened(t);
      const answer = await client.post(client.directory.keyChange, await takeover(client, next, changes));
      assertProblem(answer, type, 400);
      assert.equal((await client.post(client.account ?? '')).status, 200);
      assert.deepEqual(eventsOf(server.dataDir, 'acme_client.account_key_change'), []);
    });
  }

  test('is not replaced by the key of another account, whose URL is in the 409 response, nor by itself', async (t) => {
    const { server, watch, external, client } = await opened(t);
    const neighbor = await AcmeTestClient.registered(server.url, external, { watch });
    const answer = await client.post(client.directory.keyChange, await takeover(client, neighbor.key));
    assertProblem(answer, 'malformed', 409);
    assert.equal(answer.headers.get('Location'), neighbor.account);
    const itself = await client.post(client.directory.keyChange, await takeover(client, client.key));
    assertProblem(itself, 'malformed', 409);
  });

  test('is replaced only once by two concurrent requests', async (t) => {
    const { client } = await opened(t);
    const { keyChange } = client.directory;
    const bodies = [await takeover(client, next), await takeover(client, other)];
    const answers = await Promise.all(bodies.map((body) => client.post(keyChange, body)));
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400]);
  });

  test('is rejected if it was written to the database outside the vault', async (t) => {
    const { server, client } = await opened(t);
    if (testedEngine !== 'sqlite') return t.skip('the file is changed with SQLite');
    const jwk = JSON.stringify({ crv: 'P-256', kty: 'EC', x: other.jwk.x, y: other.jwk.y });
    outside(server.dataDir, (db) => db.prepare('update acme_client_accounts set jwk = ?').run(jwk));
    client.key = other;
    assertProblem(await client.post(client.account ?? ''), 'accountDoesNotExist', 400);
    assert.match(server.log.lines.join('\n'), /its database row was modified outside the vault/);
  });
});
