/** What a key learns about itself over HTTP, and who learns nothing. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { day } from '../../../../src/base/duration.ts';
import { rotateApiKey } from '../../../../src/domain/access/api-key-rotation.ts';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { alice } from '../../../harness/http/acme-fixtures.ts';
import { checkedServer } from '../../../harness/http/checked.ts';
import { expiredKey, revokedKey, strangers } from '../../../harness/http/credentials.ts';
import { eventsOf, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';

const path = '/api/v1/whoami';

suite('whoami', () => {
  test('is 401 without valid credentials, and refusals of known keys are recorded', async (t) => {
    const server = await checkedServer(t);
    const key = await makeKey(server.vault);
    for (const [what, lines] of Object.entries(strangers(key))) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await server.raw(method, path, lines);
        assert.deepEqual(
          [status, headers.get('WWW-Authenticate')],
          [401, 'Bearer'],
          `${method} with ${what}`,
        );
      }
    }
    assert.deepEqual(eventsOf(server.dataDir, 'access.refuse'), []);
    const ended = [await revokedKey(server), await expiredKey(server)];
    for (const { raw } of ended) assert.equal((await server.get(path, raw)).status, 401);
    assert.deepEqual(
      eventsOf(server.dataDir, 'access.refuse').map(({ actor, resource, detail }) => [
        actor,
        resource,
        detail,
      ]),
      ended.map(({ actor }, index) => [
        actor,
        `GET ${path}`,
        { code: 'unauthenticated', reason: ['revoked', 'expired'][index] },
      ]),
    );
    const elsewhere = await makeKey(server.vault, { allowed_networks: ['192.0.2.0/24'] });
    assert.equal((await server.get(path, elsewhere.raw)).status, 403);
    assert.equal((await server.raw('POST', path, [])).status, 405);
  });

  test('reports the permissions of an API key with any scope, and the secret that was used', async (t) => {
    const server = await checkedServer(t);
    for (const name of ['b', 'a']) await makeCertificate(server.vault, name);
    const wanted = {
      name: 'www',
      scopes: ['renewals:trigger'],
      certificates: ['b', 'a'],
      allowed_networks: ['127.0.0.0/8'],
      expires_at: '2027-01-01T00:00:00Z',
    } as const;
    const { id, raw } = await makeKey(server.vault, wanted);
    const ask = async (key: string) => {
      const response = await server.get(path, key);
      assert.equal(response.status, 200);
      return response.json();
    };
    const view = {
      kind: 'api-key',
      id,
      ...wanted,
      profiles: [],
      role: null,
      ...{ certificate_labels: [], reach: [], client_certificate: null },
      prefix: raw.slice(0, 15),
      certificates: ['a', 'b'],
      secret_expires_at: wanted.expires_at,
    };
    assert.deepEqual(await ask(raw), view);
    const head = await server.get(path, raw, { method: 'HEAD' });
    assert.deepEqual([head.status, await head.text()], [200, '']);
    const { raw: next } = await rotateApiKey(server.vault, localCli, id, { overlap: day });
    assert.deepEqual(await ask(raw), { ...view, secret_expires_at: '2026-11-22T12:00:00Z' });
    assert.deepEqual(await ask(next.expose()), { ...view, prefix: next.expose().slice(0, 15) });
    const any = await makeKey(server.vault, { name: 'any' });
    const { certificates, allowed_networks, expires_at, secret_expires_at } = (await ask(
      any.raw,
    )) as typeof view;
    assert.deepEqual(
      { certificates, allowed_networks, expires_at, secret_expires_at },
      { certificates: ['*'], allowed_networks: [], expires_at: null, secret_expires_at: null },
    );
  });

  test('reports all certificates for administrators, and rejects a session sent with invalid credentials', async (t) => {
    const server = await checkedServer(t, { administrators: alice.administrators });
    const response = await server.get(path, undefined, alice.init);
    const { kind, id, name, certificates } = (await response.json()) as Record<string, unknown>;
    assert.deepEqual([kind, id, name, certificates], ['administrator', null, 'alice', ['*']]);
    for (const credentials of ['', ' ', 'Bearer', 'Bearer nonsense', 'Basic YTpi']) {
      const { status } = await server.raw('GET', path, [alice.line, `Authorization: ${credentials}`]);
      assert.equal(status, 401, `a session does not count beside "${credentials}"`);
    }
  });
});
