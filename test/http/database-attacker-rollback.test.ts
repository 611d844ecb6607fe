/**
 * Someone who can write to the database but lacks the master key, and puts back what stood there before: rows with the
 * tags that the vault gave them, and the end of the audit log. What they put back is refused and found, while the log
 * stands.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { Secret } from '../../src/base/secret.ts';
import { deleteAdministrator, resetPassword } from '../../src/domain/access/administrators.ts';
import { changeApiKey } from '../../src/domain/access/api-key-change.ts';
import { updateApiKeyInput } from '../../src/domain/access/api-key-inputs.ts';
import { revokeApiKey } from '../../src/domain/access/api-keys.ts';
import { Passwords } from '../../src/domain/access/passwords.ts';
import { changeAcmeClient } from '../../src/domain/acme-server/clients/acme-client-change.ts';
import { updateAcmeClientInput } from '../../src/domain/acme-server/clients/acme-client-inputs.ts';
import { revokeAcmeClient } from '../../src/domain/acme-server/clients/acme-clients.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { verifyChain } from '../../src/domain/audit/audit-verification.ts';
import { authenticityFindings } from '../../src/domain/doctor/upkeep-findings.ts';
import { parseInput } from '../../src/domain/inputs.ts';
import type { Vault } from '../../src/domain/vault.ts';
import { AcmeTestClient, makeAcmeClient } from '../harness/acme/server-client.ts';
import {
  moveGeneration,
  outside,
  outsideUnchecked,
  putOutside,
} from '../harness/database/outside-database.ts';
import { checkedServer } from '../harness/http/checked.ts';
import { makeCertificate, makeKey } from '../harness/http/fixtures.ts';
import {
  cheapHash,
  fromPage,
  goodPassword,
  makeAdministrator,
  otherPassword,
  signIn,
} from '../harness/http/sign-in-fixtures.ts';

const file = (name: string) => `/api/v1/certificates/${name}/private.key`;

async function attacked(t: TestContext) {
  const server = await checkedServer(t);
  const { vault, dataDir } = server;
  await makeCertificate(vault, 'mine');
  await makeCertificate(vault, 'other');
  const key = await makeKey(vault, { scopes: ['private_keys:read'] });
  const value = (sql: string) => outside(dataDir, (db) => db.prepare(sql).pluck().get());
  const status = async (raw: string, name = 'mine') => (await server.get(file(name), raw)).status;
  return { server, vault, dataDir, key, value, status, ...checks(vault) };
}

function checks(vault: Vault) {
  return {
    faults: async () => (await verifyChain(vault)).faults.map(({ kind }) => kind),
    doctor: async () => (await authenticityFindings(vault))[0]?.status,
  };
}

/** The rows of a table; calling it puts them back in place of what is there. */
function saved(dataDir: string, table: string): () => void {
  const rows = outside(dataDir, (db) => db.prepare(`select * from ${table}`).all()) as Record<
    string,
    unknown
  >[];
  return () => {
    outsideUnchecked(dataDir, (db) => {
      db.exec(`delete from ${table}`);
      for (const row of rows) {
        const columns = Object.keys(row);
        const marks = columns.map(() => '?').join(', ');
        db.prepare(`insert into ${table} (${columns.join(', ')}) values (${marks})`).run(
          ...Object.values(row),
        );
      }
    });
    // The server reads again what it has cached.
    moveGeneration(dataDir);
  };
}

const passwordsOf = ({ world }: Vault) => new Passwords(world, cheapHash);

suite('a database row restored to an older state', () => {
  test('does not bring back a deleted administrator', async (t) => {
    const { server, vault, dataDir, faults, doctor } = await attacked(t);
    await makeAdministrator(vault, 'alice');
    await makeAdministrator(vault, 'mallory');
    await signIn(server, 'mallory');
    const putBack = saved(dataDir, 'administrators');
    await deleteAdministrator(vault, localCli, 'mallory', 'stays');
    assert.deepEqual([await faults(), await doctor()], [[], 'ok']);
    putBack();
    const body = { name: 'mallory', password: goodPassword };
    assert.equal((await server.get('/api/v1/session', undefined, fromPage('POST', body))).status, 401);
    assert.deepEqual([await faults(), await doctor()], [['revived'], 'failed']);
  });

  test('brings back neither an old password nor the sessions that the new one ended', async (t) => {
    const { server, vault, dataDir, faults, doctor } = await attacked(t);
    await makeAdministrator(vault, 'alice');
    const stolen = await signIn(server, 'alice');
    const [person, sessions] = [saved(dataDir, 'administrators'), saved(dataDir, 'sessions')];
    const input = { name: 'alice', password: new Secret(otherPassword) };
    await resetPassword(vault, passwordsOf(vault), localCli, input);
    const own = await signIn(server, 'alice', otherPassword);
    const current = saved(dataDir, 'administrators');
    assert.deepEqual([await faults(), await doctor()], [[], 'ok']);
    sessions();
    assert.equal((await stolen.send('GET', '/api/v1/session')).status, 401);
    assert.deepEqual([await faults(), await doctor()], [['revived'], 'failed']);
    person();
    const body = { name: 'alice', password: goodPassword };
    assert.equal((await server.get('/api/v1/session', undefined, fromPage('POST', body))).status, 401);
    assert.equal((await stolen.send('GET', '/api/v1/session')).status, 401);
    assert.deepEqual(await faults(), ['revived', 'revived']);
    current();
    outside(dataDir, (db) => db.prepare('delete from sessions').run());
    assert.equal((await own.send('GET', '/api/v1/session')).status, 401);
    assert.deepEqual(await faults(), [], 'a session that is gone is no fault');
    await signIn(server, 'alice', otherPassword);
  });

  test('does not bring back a session that newer ones ended; a password change keeps its own session', async (t) => {
    const { server, vault, dataDir, faults } = await attacked(t);
    await makeAdministrator(vault, 'alice');
    const page = await signIn(server, 'alice');
    const change = { current: goodPassword, new: otherPassword };
    assert.equal((await page.send('PUT', '/api/v1/session/password', change)).status, 204);
    assert.equal((await page.send('GET', '/api/v1/session')).status, 200);
    const putBack = saved(dataDir, 'sessions');
    for (let count = 0; count < 20; count += 1) await signIn(server, 'alice', otherPassword);
    assert.deepEqual(await faults(), []);
    putBack();
    assert.equal((await page.send('GET', '/api/v1/session')).status, 401);
    assert.deepEqual(await faults(), ['revived']);
  });

  test('does not restore rights removed from an API key, whose next change is rejected', async (t) => {
    const { vault, dataDir, key, status, faults, doctor, server } = await attacked(t);
    const rows = saved(dataDir, 'api_keys');
    const input = parseInput(updateApiKeyInput, { certificates: ['mine'] });
    await changeApiKey(vault, localCli, key.id, input);
    assert.deepEqual([await status(key.raw), await status(key.raw, 'other')], [200, 403]);
    assert.deepEqual([await faults(), await doctor()], [[], 'ok']);
    const current = saved(dataDir, 'api_keys');
    const lists = saved(dataDir, 'api_key_certificates');
    rows();
    outside(dataDir, (db) => db.prepare('delete from api_key_certificates').run());
    moveGeneration(dataDir);
    assert.deepEqual([await status(key.raw), await status(key.raw, 'other')], [401, 401]);
    assert.match(server.log.lines.join('\n'), /"level":"error","api_key":\d+,"message":"API key refused/);
    assert.deepEqual([await faults(), await doctor()], [['revived'], 'failed']);
    const renamed = parseInput(updateApiKeyInput, { name: 'renamed' });
    await assert.rejects(changeApiKey(vault, localCli, key.id, renamed), /modified outside the vault/);
    current();
    lists();
    assert.equal(await status(key.raw), 200);
    assert.deepEqual(await faults(), []);
  });

  test('does not bring back what was altered, therefore revoked, and then restored', async (t) => {
    const { server, vault, dataDir, key, status, faults } = await attacked(t);
    const external = await makeAcmeClient(vault, { domains: ['*.example.test'] });
    const client = await AcmeTestClient.at(server.url);
    assert.equal(await status(key.raw), 200);
    const rows = [saved(dataDir, 'api_keys'), saved(dataDir, 'acme_clients')];
    outside(dataDir, (db) => db.exec("update api_keys set name = 'x'; update acme_clients set name = 'x'"));
    await revokeApiKey(vault, localCli, key.id);
    await revokeAcmeClient(vault, localCli, external.id);
    for (const putBack of rows) putBack();
    assert.equal(await status(key.raw), 401);
    assert.notEqual((await client.register(external)).status, 201);
    assert.deepEqual(await faults(), ['revived', 'revived']);
  });

  test('restores neither rights removed from an ACME client nor its deactivated account', async (t) => {
    const { server, vault, dataDir, faults, doctor } = await attacked(t);
    const external = await makeAcmeClient(vault, { domains: ['*.example.test'] });
    const client = await AcmeTestClient.at(server.url);
    assert.equal((await client.register(external)).status, 201);
    const order = async () =>
      (
        await client.post(client.directory.newOrder, {
          identifiers: [{ type: 'dns', value: 'a.example.test' }],
        })
      ).status;
    assert.equal(await order(), 201);
    const rights = saved(dataDir, 'acme_clients');
    const accounts = saved(dataDir, 'acme_client_accounts');
    const input = parseInput(updateAcmeClientInput, { domains: ['other.test'] });
    await changeAcmeClient(vault, localCli, external.id, input);
    const narrowed = saved(dataDir, 'acme_clients');
    assert.equal(await order(), 400);
    assert.deepEqual([await faults(), await doctor()], [[], 'ok']);
    rights();
    assert.equal(await order(), 403);
    assert.deepEqual([await faults(), await doctor()], [['revived'], 'failed']);
    narrowed();
    assert.equal((await client.post(client.account ?? '', { status: 'deactivated' })).status, 200);
    assert.deepEqual(await faults(), []);
    accounts();
    assert.equal(await order(), 400);
    assert.deepEqual([await faults(), await doctor()], [['revived'], 'failed']);
  });
});

suite('the audit log', () => {
  test('reports deleted newest events from the next event on, although its mark was restored', async (t) => {
    const { server, vault, dataDir, key, value, status } = await attacked(t);
    const faults = async (of: Vault) => (await verifyChain(of)).faults.map(({ id, kind }) => `${id} ${kind}`);
    const mark = String(value("select value from settings where key = 'audit-mark'"));
    const last = Number(value('select max(id) from audit_events'));
    assert.equal(await status(key.raw), 200);
    assert.equal(await status(key.raw, 'other'), 200);
    outside(dataDir, (db) => db.prepare('delete from audit_events where id > ?').run(last));
    putOutside(dataDir, 'audit-mark', mark);
    assert.equal(await status(key.raw), 200, 'certificates stay available');
    assert.deepEqual(await faults(vault), [`${last + 3} missing`]);
    assert.match(
      server.log.lines.join('\n'),
      new RegExp(`"level":"error","from":${last + 1},"to":${last + 2},"message":"audit log stepped back`),
    );
    await server.stop();
    const again = await checkedServer(t, { dataDir, world: server.world });
    assert.equal((await again.get(file('mine'), key.raw)).status, 200);
    assert.deepEqual(await faults(again.vault), [`${last + 3} missing`]);
  });

  test('reports an API key as unrecorded if its creation event was deleted while the server was stopped', async (t) => {
    const { server, vault, dataDir, value } = await attacked(t);
    const mark = String(value("select value from settings where key = 'audit-mark'"));
    const last = Number(value('select max(id) from audit_events'));
    await makeKey(vault, { name: 'evil', scopes: ['private_keys:read'] });
    await server.stop();
    await server.close();
    outside(dataDir, (db) => db.prepare('delete from audit_events where id > ?').run(last));
    putOutside(dataDir, 'audit-mark', mark);
    const again = await checkedServer(t, { dataDir, world: server.world });
    const { faults, doctor } = checks(again.vault);
    assert.deepEqual([await faults(), await doctor()], [['unrecorded'], 'failed']);
  });
});
