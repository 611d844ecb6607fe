/** HTTPS: which servers the client trusts, and --verify. */
import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createSecureContext, createServer } from 'node:tls';
import { type Chain, makeChain } from '../harness/ca/openssl-chain.ts';
import { assertPair, machine, type Tool } from '../harness/client/installer.ts';
import { relay } from '../harness/client/relay.ts';
import { clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { everyTool } from './places.ts';

/** A vault behind HTTPS, with a certificate for these names. */
async function secureVault(t: TestContext, names = 'IP:127.0.0.1') {
  const vault = await clientVault(t);
  const chain = makeChain(tempDir(t), { names });
  const server = await relay(t, () => vault.url, { cert: chain.fullchainPem, key: chain.leaf.keyPem });
  return { vault, chain, server };
}

function pinOf(chain: Chain): string {
  const key = new X509Certificate(chain.leaf.certificatePem).publicKey.export({
    type: 'spki',
    format: 'der',
  });
  return `sha256//${createHash('sha256').update(key).digest('base64')}`;
}

const secureTools = everyTool().filter(([name]) => !name.startsWith('nc'));

for (const [tool, isThere] of secureTools) {
  const start = (t: TestContext, only: Tool = tool) => machine(t, { tool: only });

  test(`with --ca-file the first run and later runs trust the vault, with ${tool}`, isThere, async (t) => {
    const { vault, chain, server } = await secureVault(t);
    const client = start(t);
    const ca = join(client.home, 'ca.pem');
    writeFileSync(ca, chain.root.certificatePem);
    const installed = await vault.install(client, ['--server', server.url, '--ca-file', ca]);
    assert.equal(installed.code, 0, installed.stderr);
    writeFileSync(ca, '');
    await vault.renew();
    assert.equal((await client.run(['--run'])).code, 0);
    assertPair(client);
  });

  test(`an untrusted vault gets no API key, with ${tool}`, isThere, async (t) => {
    const { vault, server } = await secureVault(t);
    const client = start(t);
    const stranger = makeChain(tempDir(t), { label: 'Stranger' });
    const installed = await vault.install(client, ['--server', server.url]);
    assert.equal(installed.code, 10, installed.stderr);
    const ca = stranger.root.certificatePath;
    assert.equal((await vault.install(client, ['--server', server.url, '--ca-file', ca])).code, 10);
    assert.deepEqual(server.seen, []);
    assert.equal(existsSync(join(client.home, 'vault', 'jobs')), false);
  });

  test(`a vault with a certificate for another name gets no API key, with ${tool}`, isThere, async (t) => {
    const { vault, chain, server } = await secureVault(t, 'DNS:other.example');
    const ca = chain.root.certificatePath;
    assert.equal((await vault.install(start(t), ['--server', server.url, '--ca-file', ca])).code, 10);
    const byName = ['--server', server.url.replace('127.0.0.1', 'localhost'), '--ca-file', ca];
    assert.equal((await vault.install(start(t), byName)).code, 10);
    assert.deepEqual(server.seen, []);
  });
}

for (const [tool, isThere] of secureTools.filter(([name]) => name !== 'openssl')) {
  test(`--pin replaces a CA, and rejects other keys, with ${tool}`, isThere, async (t) => {
    const { vault, chain, server } = await secureVault(t);
    const client = machine(t, { tool });
    const pinned = ['--server', server.url, '--pin'];
    const installed = await vault.install(client, [...pinned, pinOf(chain)]);
    assert.equal(installed.code, 0, installed.stderr);
    assertPair(client);
    const count = server.seen.length;
    const wrong = pinOf(makeChain(tempDir(t), { label: 'Stranger' }));
    const args = [...pinned, wrong, '--destination', join(client.home, 'other')];
    assert.equal((await vault.install(client, args)).code, 10);
    const both = [...args, '--ca-file', chain.root.certificatePath];
    assert.equal((await vault.install(client, both)).code, 10);
    assert.equal(server.seen.length, count);
  });

  test(`several pins cover a key rotation, with ${tool}`, isThere, async (t) => {
    const { vault, chain, server } = await secureVault(t);
    const client = machine(t, { tool });
    const next = pinOf(makeChain(tempDir(t), { label: 'Next' }));
    const wrong = pinOf(makeChain(tempDir(t), { label: 'Stranger' }));
    for (const pins of [
      ['--pin', next, '--pin', pinOf(chain)],
      [`--pin=${pinOf(chain)},${next}`, '--pin', next],
      ['--pin', `${wrong};${next},${pinOf(chain)}`],
    ]) {
      const installed = await vault.install(client, ['--server', server.url, ...pins]);
      assert.equal(installed.code, 0, installed.stderr);
      const run = await client.run(['--run'], { script: client.copy() });
      assert.equal(run.code, 0, run.stderr);
    }
    const others = ['--server', server.url, '--pin', `${wrong},${next}`];
    const refused = await vault.install(client, others);
    assert.equal(refused.code, 10, refused.stderr);
    assert.match(refused.stderr, /does not match --pin/);
  });
}

test('--pin is rejected if no program can check it', needs('openssl'), async (t) => {
  const { vault, chain, server } = await secureVault(t);
  const refused = await vault.install(machine(t, { tool: 'openssl' }), [
    '--server',
    server.url,
    '--pin',
    pinOf(chain),
  ]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /--pin needs curl or GNU wget/);
});

test(
  '--verify checks whether the new certificate is served, and the next run retries the reload if not',
  needs('openssl'),
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    const old = makeChain(tempDir(t)).leaf;
    const asked: string[] = [];
    let shows: () => { cert: string; key: string } = () => ({ cert: old.certificatePem, key: old.keyPem });
    const service = createServer({
      cert: old.certificatePem,
      key: old.keyPem,
      SNICallback: (name, done) => {
        asked.push(name);
        done(null, createSecureContext(shows()));
      },
    });
    service.on('tlsClientError', () => {
      // The client closes the connection as soon as it has the certificate.
    });
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    t.after(() => service.close());
    const place = `127.0.0.1:${(service.address() as AddressInfo).port}`;
    const environment = { CERTIFICATE_VAULT_VERIFY_TRIES: '1' };
    const reload = `echo x >>${client.home}/reloads`;
    const installed = await vault.install(client, ['--verify', place, '--reload-command', reload], {
      environment,
    });
    assert.equal(installed.code, 14, installed.stderr);
    assert.match(installed.stderr, /does not serve the new certificate/);
    assertPair(client);
    shows = () => ({ cert: client.file('tls.crt'), key: client.file('tls.key') });
    const next = await client.run(['--run'], { environment });
    assert.equal(next.code, 0, next.stderr);
    assert.equal(readFileSync(join(client.home, 'reloads'), 'utf8'), 'x\nx\n');
    assert.deepEqual(new Set(asked), new Set(['www.example.test']));
    service.close();
    await vault.renew();
    const gone = await client.run(['--run'], { environment });
    assert.equal(gone.code, 14);
    assert.match(gone.stderr, /is unreachable or does not speak TLS/);
  },
);
