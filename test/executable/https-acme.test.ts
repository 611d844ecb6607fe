/** A public certificate for the vault itself: the private CA's is served until it comes, and proves its own name. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, type TestContext, test } from 'node:test';
import { type AcmeVault, acmeVault, needsAcme } from '../harness/acme/vault.ts';
import { eventually } from '../harness/eventually.ts';
import { visit } from '../harness/http/https-client.ts';
import { serve } from '../harness/processes/vault-process.ts';

const name = 'vault.example.test';

/** `vault serve` with HTTPS where the CA looks for tls-alpn-01, and nothing else that could answer. */
function serveHttps(t: TestContext, { dataDir, dns, tlsPort }: AcmeVault) {
  const publicUrl = ['--public-url', `https://${name}:${tlsPort}`];
  const args = ['--resolver', dns.server, '--tls-certificate', 'vault', ...publicUrl];
  return serve(t, dataDir, { listen: `127.0.0.1:${tlsPort}`, args });
}

suite('a public certificate for the vault itself', needsAcme(), () => {
  test('replaces the private one without a restart, with tls-alpn-01 on the HTTPS port', async (t) => {
    const vault = await acmeVault(t, { authzReuse: 0 });
    const server = await serveHttps(t, vault);
    const health = `${server.url}/api/v1/health`;
    const before = await visit(health);
    assert.match(before.leaf.issuer, /Certificate Vault Intermediate/);
    await vault.done('certificate', 'update', '--name', 'vault', '--issuer', 'pebble');
    const unchanged = await visit(health);
    assert.equal(unchanged.leaf.serialNumber, before.leaf.serialNumber, 'nothing was ordered yet');
    const order = ['--issuer', 'pebble', '--challenge', 'tls-alpn-01', '--wait'];
    const said = await vault.done('certificate', 'update', '--name', 'vault', ...order);
    assert.match(said, /^vault: version 2, valid until /m);
    const root = await vault.ca.root();
    const after = await eventually('the public certificate', async () =>
      visit(health, { ca: root, servername: name }).catch(() => undefined),
    );
    assert.match(after.leaf.issuer, /Pebble/);
    assert.equal(after.pin, before.pin, 'who has pinned the key still knows the vault');
    assert.deepEqual(vault.query('select * from acme_challenges'), []);
  });

  test('is served without a restart if it was ordered before the first start', async (t) => {
    const vault = await acmeVault(t, { authzReuse: 0 });
    const order = ['--domain', name, '--issuer', 'pebble', '--challenge', 'tls-alpn-01'];
    await vault.done('certificate', 'create', '--name', 'vault', ...order);
    const server = await serveHttps(t, vault);
    assert.match(
      server.log(),
      /"msg":"certificate not issued yet; serving a temporary one from the private CA"/,
    );
    const root = await vault.ca.root();
    const served = await eventually('the public certificate', async () =>
      visit(`${server.url}/api/v1/health`, { ca: root, servername: name }).catch(() => undefined),
    );
    assert.equal(served.status, 200);
    assert.match(served.leaf.issuer, /Pebble/);
    const [row] = vault.query<{ certificate_pem: string }>(
      'select certificate_pem from certificate_versions',
    );
    assert.equal(new X509Certificate(row?.certificate_pem ?? '').serialNumber, served.leaf.serialNumber);
  });
});
