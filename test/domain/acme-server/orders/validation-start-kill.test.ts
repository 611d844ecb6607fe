/**
 * A validation whose process is killed with kill -9: the executable, started again, validates when the client looks at
 * its order.
 */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import { AcmeTestClient, csrFor } from '../../../harness/acme/server-client.ts';
import { outside } from '../../../harness/database/outside-database.ts';
import { fakeDns } from '../../../harness/dns/fake-dns.ts';
import { eventually } from '../../../harness/eventually.ts';
import { freePort } from '../../../harness/processes/port.ts';
import { serve, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

/** As if the time of a validation had passed. */
function letTimePass(dataDir: string): void {
  outside(dataDir, (db) => {
    const text = db.prepare('select authorizations from acme_client_orders').pluck().get();
    const earlier = String(text).replace(/"until":\d+/, '"until":1');
    assert.notEqual(earlier, text);
    db.prepare('update acme_client_orders set authorizations = ?').run(earlier);
  });
}

test('an order whose server was killed during validation becomes valid after a restart', async (t) => {
  const dns = await fakeDns(t);
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  dns.trouble = () => {
    resolve();
    return 'silence';
  };
  const dataDir = tempDir(t);
  const listen = `127.0.0.1:${await freePort()}`;
  const start = () => serve(t, dataDir, { listen, args: ['--resolver', dns.server] });
  const first = await start();
  const options = ['--name', 'proxy', '--domain', '*.example.test', '--validate', 'dns-01', '--json'];
  const created = await vault(['acme-client', 'create', ...options, '--data-dir', dataDir]);
  assert.equal(created.code, 0, created.stderr);
  const { kid, hmac_key } = JSON.parse(created.stdout);
  const external = { kid, hmacKey: Buffer.from(hmac_key, 'base64url') };
  const client = await AcmeTestClient.registered(first.url, external);
  const ordered = await client.order(['www.example.test']);
  const order = ordered.headers.get('Location') ?? '';
  const [authorization] = ordered.json.authorizations;
  const [{ url, token }] = (await client.post(authorization)).json.challenges;
  assert.equal((await client.post(url, {})).json.status, 'processing');
  await asked;
  await first.end('SIGKILL');

  const digest = hash('sha256', `${token}.${await client.thumbprint()}`, 'base64url');
  dns.records = { 'TXT _acme-challenge.www.example.test': [digest] };
  dns.trouble = () => undefined;
  await start();
  client.nonces.length = 0;
  assert.equal((await client.post(url)).json.status, 'processing');
  letTimePass(dataDir);
  await eventually('the validation', async () => {
    const { json } = await client.post(authorization);
    assert.match(json.status, /^(pending|valid)$/);
    return json.status === 'valid' ? json : undefined;
  });
  assert.equal((await client.post(order)).json.status, 'ready');
  const finalized = await client.post(ordered.json.finalize, { csr: await csrFor(['www.example.test']) });
  assert.equal(finalized.json.status, 'valid', finalized.text);
});
