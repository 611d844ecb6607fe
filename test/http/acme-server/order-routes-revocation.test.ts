/** Revocation over ACME: by the client that ordered a certificate and by the key in it, and by nobody else. */
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { suite, type TestContext, test } from 'node:test';
import { exportJWK } from 'jose';
import { revokeAcmeClient } from '../../../src/domain/acme-server/clients/acme-clients.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import {
  AcmeTestClient,
  assertProblem,
  type KeyPair,
  makeAcmeClient,
  newKey,
  newPkcs8,
} from '../../harness/acme/server-client.ts';
import { addStagingCa } from '../../harness/ca/private-ca-fixtures.ts';
import { apiChecker } from '../../harness/http/api-checker.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { eventsOf, makeCertificate, renewCertificate } from '../../harness/http/fixtures.ts';

/** A new certificate of the client, and the key in it. */
async function certificateOf(client: AcmeTestClient) {
  const pkcs8 = newPkcs8();
  const { pem } = await client.issue(['www.example.test'], { key: pkcs8 });
  const certificate = new X509Certificate(pem).raw.toString('base64url');
  const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  const { kty = '', crv = '', x = '', y = '' } = await exportJWK(privateKey);
  const key: KeyPair = { alg: 'ES256', privateKey, jwk: { kty, crv, x, y } };
  return { pem, certificate, key };
}

async function issued(t: TestContext) {
  const server = await checkedServer(t);
  const watch = apiChecker(server.document);
  const external = await makeAcmeClient(server.vault);
  const client = await AcmeTestClient.registered(server.url, external, { watch });
  const { pem, certificate, key } = await certificateOf(client);
  const isOnCrl = async () => {
    const crl = Buffer.from(await (await server.get('/client/ca.crl')).arrayBuffer());
    return crl.includes(Buffer.from(new X509Certificate(pem).serialNumber.padStart(32, '0'), 'hex'));
  };
  return { server, watch, external, client, certificate, key, isOnCrl };
}

suite('a certificate', () => {
  test('is revoked by the account that ordered it: once, on the CRL, and recorded with the reason', async (t) => {
    const { server, client, external, certificate, isOnCrl } = await issued(t);
    assert.equal(await isOnCrl(), false);
    const answer = await client.post(client.directory.revokeCert, { certificate, reason: 4 });
    assert.deepEqual([answer.status, answer.text], [200, '']);
    assert.equal(await isOnCrl(), true);
    assertProblem(await client.post(client.directory.revokeCert, { certificate }), 'alreadyRevoked', 400);
    const [event, ...others] = eventsOf(server.dataDir, 'certificate.revoke');
    assert.deepEqual(others, []);
    assert.equal(event?.actor, `acme-client:${external.id}:${external.name}`);
    assert.deepEqual(event?.detail, { version: 1, reason: 'superseded' });
  });

  test('is revoked by another account of its client, and only once by concurrent requests', async (t) => {
    const { server, watch, external, certificate } = await issued(t);
    const other = await AcmeTestClient.registered(server.url, external, { watch });
    const revoke = () => other.post(other.directory.revokeCert, { certificate, reason: 0 });
    const answers = await Promise.all([revoke(), revoke()]);
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400]);
    assert.equal(eventsOf(server.dataDir, 'certificate.revoke').length, 1);
  });

  test('is revoked by its key, also after its client was revoked', async (t) => {
    const { server, client, external, certificate, key, isOnCrl } = await issued(t);
    await revokeAcmeClient(server.vault, localCli, external.id);
    assertProblem(await client.post(client.directory.revokeCert, { certificate }), 'unauthorized', 403);
    const options = { withJwk: true, key };
    const answer = await client.post(client.directory.revokeCert, { certificate, reason: 1 }, options);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(await isOnCrl(), true);
    const [event] = eventsOf(server.dataDir, 'certificate.revoke');
    assert.equal(event?.actor, `acme-client:${external.id}:${external.name}`);
  });

  test('is not revoked by other clients, keys and directories, nor if the vault holds its key', async (t) => {
    const { server, watch, client, certificate, key, isOnCrl } = await issued(t);
    await addStagingCa(server.vault);
    const stranger = await makeAcmeClient(server.vault, { issuers: ['local-ca', 'staging-ca'] });
    const url = client.directory.revokeCert;
    const other = await AcmeTestClient.registered(server.url, stranger, { watch });
    assertProblem(await other.post(url, { certificate }), 'unauthorized', 403);
    assertProblem(
      await other.post(url, { certificate }, { withJwk: true, key: await newKey() }),
      'unauthorized',
      403,
    );
    const elsewhere = await AcmeTestClient.at(server.url, { issuer: 'staging-ca', watch });
    const byKey = { withJwk: true, key };
    assertProblem(
      await elsewhere.post(elsewhere.directory.revokeCert, { certificate }, byKey),
      'unauthorized',
      403,
    );
    const forged = { withJwk: true, key: { ...(await newKey()), jwk: key.jwk } };
    assertProblem(await other.post(url, { certificate }, forged), 'malformed', 400);
    assert.equal(await isOnCrl(), false);
    await makeCertificate(server.vault, 'own');
    await renewCertificate(server.vault, 'own');
    const row = await server.vault.db.reader
      .selectFrom('certificate_versions as v')
      .innerJoin('certificates as c', 'c.id', 'v.certificate_id')
      .select('certificate_pem')
      .where('c.name', '=', 'own')
      .executeTakeFirstOrThrow();
    const own = new X509Certificate(row.certificate_pem).raw.toString('base64url');
    assertProblem(await client.post(url, { certificate: own }), 'unauthorized', 403);
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.revoke'), []);
  });

  test('is not revoked for a reason reserved for CAs, by a malformed request or after its expiry', async (t) => {
    const { server, client, certificate } = await issued(t);
    const url = client.directory.revokeCert;
    for (const reason of [2, 6, 7, 8, 9, 10, 11, -1]) {
      assertProblem(await client.post(url, { certificate, reason }), 'badRevocationReason', 400);
    }
    for (const bad of [
      { certificate: 'AAAA' },
      { certificate: 'a b' },
      {},
      { certificate, reason: 'x' },
      { certificate: 7 },
    ]) {
      assertProblem(await client.post(url, bad), 'malformed', 400);
    }
    assertProblem(await client.post(url, ''), 'malformed', 400);
    server.world.advance(91 * 86_400_000);
    client.nonces.length = 0;
    assert.match(assertProblem(await client.post(url, { certificate }), 'malformed', 400), /expired/);
  });
});

suite('requests to revoke a certificate that its key signed', () => {
  test('are limited to 10 an hour for each certificate, also concurrently, while accounts and other certificates go on', async (t) => {
    const { server, client, external, certificate, key } = await issued(t);
    const url = client.directory.revokeCert;
    const byKey = () => client.post(url, { certificate }, { withJwk: true, key });
    const stranger = await newKey();
    for (let count = 0; count < 12; count += 1) {
      const forged = await client.post(url, { certificate }, { withJwk: true, key: stranger });
      assertProblem(forged, 'unauthorized', 403);
    }
    const answers = await Promise.all(Array.from({ length: 25 }, byKey));
    const limited = answers.filter(({ status }) => status === 429);
    assert.equal(limited.length, 15, 'a stranger used nothing up');
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
    for (const answer of limited) {
      assert.equal(
        assertProblem(answer, 'rateLimited'),
        'The key of this certificate signed 10 requests to revoke it in an hour; retry after the time in Retry-After. Administrators and "vault certificate revoke" can revoke it before that.',
      );
      assert.equal(answer.headers.get('Retry-After'), '3600');
    }
    assertProblem(await client.post(url, { certificate }), 'alreadyRevoked', 400);
    const other = await certificateOf(client);
    const revoked = await client.post(
      url,
      { certificate: other.certificate },
      { withJwk: true, key: other.key },
    );
    assert.equal(revoked.status, 200, revoked.text);
    server.world.advance(3_600_000);
    client.nonces.length = 0;
    assertProblem(await byKey(), 'alreadyRevoked', 400);
    assert.equal(eventsOf(server.dataDir, 'certificate.revoke').length, 2, external.name);
  });

  test('are limited to a burst of 100 from an address whether or not they are valid, while accounts go on', async (t) => {
    const { server, client, certificate, key, isOnCrl } = await issued(t);
    const url = client.directory.revokeCert;
    const stranger = await newKey();
    const answers = await Promise.all(
      Array.from({ length: 130 }, (_, at) =>
        client.post(url, { certificate, reason: at % 10 }, { withJwk: true, key: stranger }),
      ),
    );
    const limited = answers.filter(({ status }) => status === 429);
    assert.equal(limited.length, 30);
    const [refused = await client.post(url, { certificate }, { withJwk: true, key })] = limited;
    assert.equal(
      assertProblem(refused, 'rateLimited'),
      'Too many requests without an account to revoke certificates came from this address; retry after the time in Retry-After. An account of the client that ordered a certificate can revoke it before that.',
    );
    assert.equal(refused.headers.get('Retry-After'), '1');
    assertProblem(await client.post(url, { certificate }, { withJwk: true, key }), 'rateLimited', 429);
    assert.equal(await isOnCrl(), false);
    server.world.advance(1000);
    const next = await client.post(url, { certificate }, { withJwk: true, key });
    assert.equal(next.status, 200, next.text);
    assertProblem(await client.post(url, { certificate }, { withJwk: true, key }), 'rateLimited', 429);
    assertProblem(await client.post(url, { certificate }), 'alreadyRevoked', 400);
  });
});
