/** Which refusals are recorded, and that what another process does to rights counts at the very next request. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { pageOfApiKeys } from '../../../src/domain/access/api-key-views.ts';
import { deleteApiKey, revokeApiKey } from '../../../src/domain/access/api-keys.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { outside, refuse } from '../../harness/database/outside-database.ts';
import { ownRows } from '../../harness/database/own-rows.ts';
import { checkedServer, codeOf } from '../../harness/http/checked.ts';
import { expiredKey, revokedKey, strangers } from '../../harness/http/credentials.ts';
import { eventsOf, makeCertificate, makeKey, renewCertificate } from '../../harness/http/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const file = '/api/v1/certificates/www/private.key';

async function prepared(t: Parameters<typeof checkedServer>[0]) {
  const server = await checkedServer(t);
  for (const name of ['www', 'other']) await makeCertificate(server.vault, name);
  const refusals = () => eventsOf(server.dataDir, 'access.refuse');
  const statusFor = async (raw: string, path = file) => (await server.get(path, raw)).status;
  return { server, refusals, statusFor };
}

suite('a rejected request', () => {
  test('with a known key is recorded with actor, action, reason, address and request id', async (t) => {
    const { server, refusals } = await prepared(t);
    const refused = [
      { key: await revokedKey(server), detail: { code: 'unauthenticated', reason: 'revoked' } },
      { key: await expiredKey(server), detail: { code: 'unauthenticated', reason: 'expired' } },
      {
        key: await makeKey(server.vault, { name: 'reader', scopes: ['certificates:read'] }),
        detail: { code: 'forbidden', scope: 'private_keys:read' },
      },
      {
        key: await makeKey(server.vault, { name: 'elsewhere', certificates: ['other'] }),
        detail: { code: 'forbidden', scope: 'private_keys:read' },
      },
    ];
    const expected = [];
    for (const { key, detail } of refused) {
      const response = await server.get(`${file}?version=1`, key.raw);
      expected.push({
        actor: key.actor,
        action: 'access.refuse',
        resource: `GET ${file}`,
        detail,
        ip: '127.0.0.1',
        request_id: response.headers.get('X-Request-Id'),
      });
      assert.deepEqual(refusals(), expected, 'it is durable when the answer arrives');
    }
  });

  test('is recorded under the requested name, with any characters', async (t) => {
    const { server, refusals } = await prepared(t);
    const { raw } = await makeKey(server.vault, { certificates: ['other'] });
    for (const name of ["$&$'$`$1", '{id}', 'a/b', 'ключ\n']) {
      await server.raw('GET', `/api/v1/certificates/${encodeURIComponent(name)}/renewals/7`, [
        `Authorization: Bearer ${raw}`,
      ]);
      assert.equal(refusals().at(-1)?.resource, `GET /api/v1/certificates/${name}/renewals/7`);
    }
  });

  test('with HEAD or If-None-Match is recorded', async (t) => {
    const { server, refusals } = await prepared(t);
    const { raw } = await revokedKey(server);
    await server.get(file, raw, { method: 'HEAD' });
    await server.get(file, raw, { headers: { 'If-None-Match': '*' } });
    assert.deepEqual(
      refusals().map(({ resource }) => resource),
      [`HEAD ${file}`, `GET ${file}`],
    );
  });

  test('without a known key is not recorded', async (t) => {
    const { server, refusals } = await prepared(t);
    const key = await makeKey(server.vault);
    for (const lines of Object.values(strangers(key)))
      assert.equal((await server.raw('GET', file, lines)).status, 401);
    assert.deepEqual(refusals(), []);
  });

  test('gets 503 unavailable if it cannot be recorded', async (t) => {
    const { server, refusals } = await prepared(t);
    const { raw } = await revokedKey(server);
    refuse(server.dataDir, 'insert', 'audit_events');
    const response = await server.get(file, raw);
    assert.deepEqual([response.status, await codeOf(response)], [503, 'unavailable']);
    assert.deepEqual(refusals(), []);
  });
});

suite('changes by another process', () => {
  /** The server, and a second vault on its directory, as the command line opens one. */
  async function twoProcesses(t: Parameters<typeof checkedServer>[0]) {
    const { server, ...rest } = await prepared(t);
    const { vault: cli } = await testVault(t, { dataDir: server.dataDir, world: server.world });
    return { server, cli, ...rest };
  }

  test('a revoked or deleted key is rejected at the next request', async (t) => {
    const { server, cli, statusFor, refusals } = await twoProcesses(t);
    const key = await makeKey(server.vault);
    assert.equal(await statusFor(key.raw), 200);
    await revokeApiKey(cli, localCli, key.id);
    assert.equal(await statusFor(key.raw), 401);
    assert.equal(refusals().length, 1);
    await deleteApiKey(cli, localCli, key.id);
    assert.equal(await statusFor(key.raw), 401);
    assert.equal(refusals().length, 1, 'a deleted key is unknown');
  });

  test('a new key is accepted immediately and rejected from its expiry on', async (t) => {
    const { server, cli, statusFor } = await twoProcesses(t);
    const expires_at = new Date(server.world.now() + 60_000).toISOString();
    const key = await makeKey(cli, { expires_at });
    assert.equal(await statusFor(key.raw), 200);
    server.world.advance(59_999);
    assert.equal(await statusFor(key.raw), 200);
    server.world.advance(1);
    assert.equal(await statusFor(key.raw), 401);
  });

  test('changed scopes and allowlists apply at the next request', async (t) => {
    const { server, statusFor } = await twoProcesses(t);
    const key = await makeKey(server.vault, { certificates: ['www', 'other'] });
    assert.equal(await statusFor(key.raw), 200);
    const change = async (sql: string) => {
      outside(server.dataDir, (db) => db.prepare(sql).run(key.id));
      await ownRows(server.vault);
    };
    await change(`delete from api_key_certificates where api_key_id = ?
            and certificate_id = (select id from certificates where name = 'www')`);
    assert.equal(await statusFor(key.raw), 403);
    await change('update api_keys set any_certificate = 1 where id = ?');
    assert.equal(await statusFor(key.raw), 200);
    await change(`update api_keys set scopes = '["certificates:read"]' where id = ?`);
    assert.equal(await statusFor(key.raw), 403);
  });

  test('a deleted certificate is gone at the next request, and stays off allowlists after it is created again', async (t) => {
    const { server, cli, statusFor } = await twoProcesses(t);
    const [any, only] = [await makeKey(server.vault), await makeKey(server.vault, { certificates: ['www'] })];
    assert.deepEqual([await statusFor(any.raw), await statusFor(only.raw)], [200, 200]);
    await deleteCertificate(cli, localCli, 'www', { force: true });
    assert.deepEqual([await statusFor(any.raw), await statusFor(only.raw)], [404, 403]);
    await makeCertificate(cli, 'www');
    assert.deepEqual([await statusFor(any.raw), await statusFor(only.raw)], [200, 403]);
  });

  test('a renewal is served at the very next request', async (t) => {
    const { server, cli } = await twoProcesses(t);
    const { raw } = await makeKey(server.vault);
    const version = async () => (await server.get(file, raw)).headers.get('Certificate-Version');
    assert.equal(await version(), '1');
    await renewCertificate(cli, 'www');
    assert.equal(await version(), '2');
  });
});

suite('the last use of a key', () => {
  test('is recorded with the address, at most once a minute', async (t) => {
    const { server, statusFor } = await prepared(t);
    const key = await makeKey(server.vault);
    const idle = await makeKey(server.vault);
    const lastUse = async () => {
      await server.vault.keyUse.write();
      const [used, unused] = await pageOfApiKeys(server.vault, { limit: 10 });
      assert.deepEqual([unused?.id, unused?.last_used_at, unused?.last_used_ip], [idle.id, null, null]);
      return [used?.last_used_at, used?.last_used_ip];
    };
    assert.deepEqual(await lastUse(), [null, null]);
    await statusFor(key.raw, '/api/v1/certificates');
    assert.deepEqual(await lastUse(), ['2026-11-21T12:00:00Z', '127.0.0.1']);
    server.world.advance(59_000);
    await statusFor(key.raw);
    assert.deepEqual(await lastUse(), ['2026-11-21T12:00:00Z', '127.0.0.1']);
    server.world.advance(1000);
    await statusFor(key.raw);
    assert.deepEqual(await lastUse(), ['2026-11-21T12:01:00Z', '127.0.0.1']);
  });

  test('is not changed by a request with a revoked key', async (t) => {
    const { server, statusFor } = await prepared(t);
    const key = await revokedKey(server);
    assert.equal(await statusFor(key.raw), 401);
    await server.vault.keyUse.write();
    assert.equal((await pageOfApiKeys(server.vault, { limit: 10 }))[0]?.last_used_at, null);
  });
});
