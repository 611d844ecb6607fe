/** What anybody may ask: health, readiness in each of its states, the private CA's root. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { holdLock, outside, putOutside, watchWrites } from '../../harness/database/outside-database.ts';
import { type CheckedServer, checkedServer } from '../../harness/http/checked.ts';
import { makeKey } from '../../harness/http/fixtures.ts';

type Ready = { readonly status: string; readonly checks: Readonly<Record<string, string>> };

async function ready(server: CheckedServer): Promise<{ status: number; body: Ready }> {
  const response = await server.get('/api/v1/ready');
  const text = await response.text();
  assert.doesNotMatch(text, /\/|vault\.db|master\.key/, 'no path is named');
  assert.equal(response.headers.get('Cache-Control'), 'no-store');
  return { status: response.status, body: JSON.parse(text) };
}

const details = { backup: { state: 'none', age_seconds: null }, disk: { state: 'ok' } };
const allWell = { database: 'ok', master_key: 'ok', renewal_engine: 'ok' };

suite('health', () => {
  test('is ok and reports the version, with or without credentials', async (t) => {
    const server = await checkedServer(t);
    const { raw } = await makeKey(server.vault);
    for (const key of [undefined, 'garbage', raw]) {
      const response = await server.get('/api/v1/health', key);
      assert.equal(response.status, 200);
      assert.deepEqual(await response.json(), { status: 'ok', version: '0.0.0-test' });
    }
  });

  test('stays 200 when the database fails and readiness is 503', async (t) => {
    const server = await checkedServer(t);
    t.mock.method(server.vault.db, 'generation', async () => {
      throw new Error('no database');
    });
    assert.equal((await server.get('/api/v1/health')).status, 200);
    assert.equal((await ready(server)).status, 503);
  });
});

suite('readiness', () => {
  test('is 200 with three checks while the renewal engine beats', async (t) => {
    const server = await checkedServer(t);
    server.vault.renewalHeartbeat.beat();
    assert.deepEqual(await ready(server), {
      status: 200,
      body: { status: 'ready', checks: allWell, details },
    });
    const head = await server.get('/api/v1/ready', undefined, { method: 'HEAD' });
    assert.equal(head.status, 200);
  });

  test('is 503 before the first beat and a minute after the last, and 200 again with the next', async (t) => {
    const server = await checkedServer(t);
    const dead = {
      status: 503,
      body: { status: 'not_ready', checks: { ...allWell, renewal_engine: 'failed' }, details },
    };
    assert.deepEqual(await ready(server), dead);
    server.vault.renewalHeartbeat.beat();
    server.world.advance(59_999);
    assert.equal((await ready(server)).status, 200);
    server.world.advance(1);
    assert.deepEqual(await ready(server), dead);
    const head = await server.get('/api/v1/ready', undefined, { method: 'HEAD' });
    assert.equal(head.status, 503);
    server.vault.renewalHeartbeat.beat();
    assert.equal((await ready(server)).status, 200);
  });

  test('is 503 when the master key does not open its check blob, and logs why', async (t) => {
    const server = await checkedServer(t);
    server.vault.renewalHeartbeat.beat();
    const check = 'master-key-check';
    const breaking = [
      () => putOutside(server.dataDir, check, Buffer.alloc(80)),
      () => putOutside(server.dataDir, check, 'text'),
      () => outside(server.dataDir, (db) => db.exec(`delete from settings where key = '${check}'`)),
    ];
    for (const spoil of breaking) {
      spoil();
      const { status, body } = await ready(server);
      assert.deepEqual(
        [status, body],
        [503, { status: 'not_ready', checks: { ...allWell, master_key: 'failed' }, details }],
      );
    }
    assert.match(server.log.lines.join('\n'), /"level":"warn","check":"master_key"/);
  });

  test('is 503 when the database cannot be read', async (t) => {
    const server = await checkedServer(t);
    server.vault.renewalHeartbeat.beat();
    t.mock.method(server.vault.db, 'generation', async () => {
      throw new Error(`disk I/O error in ${server.dataDir}/vault.db`);
    });
    const { status, body } = await ready(server);
    assert.deepEqual([status, body.checks], [503, { ...allWell, database: 'failed' }]);
  });

  test('writes nothing, and is 200 while another process holds the write lock', async (t) => {
    const server = await checkedServer(t);
    server.vault.renewalHeartbeat.beat();
    const written = watchWrites(t, server.dataDir);
    const before = written();
    const writes = t.mock.method(server.vault.db, 'write');
    for (let count = 0; count < 3; count += 1) await ready(server);
    assert.deepEqual([written(), writes.mock.callCount()], [before, 0]);
    const other = holdLock(server.dataDir);
    assert.equal((await ready(server)).status, 200);
    other.release();
  });
});

suite('the root of the private CA', () => {
  test('is served as PEM with one self-signed CA certificate, without a key', async (t) => {
    const server = await checkedServer(t);
    const response = await server.get('/client/ca.crt');
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('Content-Type'), 'application/x-pem-file');
    const pem = await response.text();
    assert.match(pem, /^-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n$/);
    const root = new X509Certificate(pem);
    assert(root.ca && root.verify(root.publicKey));
    assert.equal(root.subject, root.issuer);
    const head = await server.get('/client/ca.crt', undefined, { method: 'HEAD' });
    assert.equal(head.headers.get('Content-Length'), String(pem.length));
  });
});
