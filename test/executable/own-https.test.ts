/** The vault's own HTTPS as people meet it: the executable, its commands in other processes, curl and files. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { issue, makeChain } from '../harness/ca/openssl-chain.ts';
import { eventually } from '../harness/eventually.ts';
import { type Visit, visit } from '../harness/http/https-client.ts';
import { requestText } from '../harness/http/raw.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { type RunningVault, serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const run = promisify(execFile);
const health = '/api/v1/health';
const own = ['--tls-certificate', 'vault'];

/** What a command prints. Fails with its complaint. */
async function done(dataDir: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await vault([...args, '--data-dir', dataDir]);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** As docs/how-to/https.md gets it. */
async function pinShown(dataDir: string): Promise<string> {
  const shown = await done(dataDir, 'certificate', 'show', '--name', 'vault');
  return /^Public key pin +(sha256\/\/\S{44})$/m.exec(shown)?.[1] ?? assert.fail(shown);
}

/** The first answer with another certificate than this one. */
function nextAfter(server: RunningVault, before: Visit): Promise<Visit> {
  return eventually('another certificate', async () => {
    const now = await visit(server.url + health);
    return now.leaf.serialNumber === before.leaf.serialNumber ? undefined : now;
  });
}

async function refused(t: TestContext, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await vault(['serve', '--data-dir', join(tempDir(t), 'data'), ...args]);
  assert.deepEqual([code, stdout], [1, ''], stderr);
  return stderr.replace(/^\{.*\}\n/gm, '');
}

suite('a vault with a certificate of its own', () => {
  test('speaks HTTPS at its first start, and logs the pin that its command shows', async (t) => {
    const dataDir = tempDir(t);
    const server = await serve(t, dataDir, { args: own });
    assert.match(server.url, /^https:\/\/127\.0\.0\.1:\d+$/);
    const { status, leaf, pin } = await visit(server.url + health);
    assert.equal(status, 200);
    assert.equal(leaf.subjectAltName, 'IP Address:127.0.0.1, DNS:localhost');
    assert.equal(await pinShown(dataDir), pin);
    assert.match(server.log(), new RegExp(`"pin":"${pin.replaceAll('+', '\\+')}".*private CA`));
    assert(!server.log().includes('#token='));
    assert.deepEqual(await server.end(), { code: 0, signal: null });
  });

  test(
    'is trusted by its pin or its CA, and a wrong pin, CA or host name is rejected',
    needs('curl'),
    async (t) => {
      const dataDir = tempDir(t);
      const server = await serve(t, dataDir, {
        args: [...own, '--public-url', 'https://vault.example.test'],
      });
      const curl = (...args: readonly string[]) => run('curl', ['-fsS', ...args]);
      const pin = await pinShown(dataDir);
      const { stdout: ca } = await curl('-k', '--pinnedpubkey', pin, `${server.url}/client/ca.crt`);
      assert(new X509Certificate(ca).ca);
      const stranger = `sha256//${'A'.repeat(43)}=`;
      await assert.rejects(curl('-k', '--pinnedpubkey', stranger, server.url + health), { code: 90 });
      await assert.rejects(curl(server.url + health), { code: 60 });
      const file = join(tempDir(t), 'ca.crt');
      writeFileSync(file, ca);
      const { port } = new URL(server.url);
      const named = ['--resolve', `vault.example.test:${port}:127.0.0.1`, '--cacert', file];
      assert.match((await curl(...named, `https://vault.example.test:${port}${health}`)).stdout, /"ok"/);
      await assert.rejects(curl('--cacert', file, server.url + health), { code: 60 }, 'for another name');
    },
  );

  test(
    'keeps its pin when the certificate is renewed, and serves an imported certificate that replaces it',
    needs('openssl'),
    async (t) => {
      const dataDir = tempDir(t);
      const server = await serve(t, dataDir, { args: own });
      const first = await visit(server.url + health);
      await done(dataDir, 'certificate', 'renew', '--name', 'vault', '--wait');
      const second = await nextAfter(server, first);
      assert.equal(second.pin, first.pin);
      await done(dataDir, 'certificate', 'delete', '--name', 'vault', '--force');
      const chain = makeChain(tempDir(t), { names: 'IP:127.0.0.1' });
      const files = ['--fullchain', chain.fullchainPath, '--private-key', chain.leaf.keyPath];
      await done(dataDir, 'certificate', 'import', '--name', 'vault', ...files);
      const third = await nextAfter(server, second);
      assert.equal(third.leaf.fingerprint256, new X509Certificate(chain.leaf.certificatePem).fingerprint256);
      const trusted = { ca: chain.root.certificatePem };
      assert.equal((await visit(server.url + health, trusted)).status, 200);
    },
  );

  test('warns at the start if the certificate is for another host than the public URL', async (t) => {
    const dataDir = tempDir(t);
    const at = (host: string) => [...own, '--public-url', `https://${host}`];
    const before = await serve(t, dataDir, { args: at('old.example.test') });
    await before.end();
    const server = await serve(t, dataDir, { args: at('new.example.test') });
    assert.match(
      server.log(),
      /"level":"warn".*"hosts":\["new\.example\.test"\].*certificate update --domain/,
    );
    const seen = await visit(server.url + health);
    await done(dataDir, 'certificate', 'update', '--name', 'vault', '--domain', 'new.example.test');
    const after = await nextAfter(server, seen);
    assert.equal(after.leaf.subjectAltName, 'DNS:new.example.test');
    assert.equal(after.pin, seen.pin);
  });

  test('finishes the request in flight at SIGTERM, and refuses new connections', async (t) => {
    const server = await serve(t, tempDir(t), { args: own });
    const { port } = new URL(server.url);
    const socket = connect({ host: '127.0.0.1', port: Number(port), rejectUnauthorized: false });
    let received = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      received += chunk;
    });
    const half = `GET ${health} HTTP/1.1\r\nHost: a\r\n`;
    socket.write(requestText('GET', health) + half);
    while (!received.includes('"status":"ok"')) await once(socket, 'data');
    received = '';
    const ended = server.end();
    await eventually('the stop', () => (server.log().includes('"msg":"stopping"') ? true : undefined));
    await assert.rejects(visit(server.url + health), { code: 'ECONNREFUSED' });
    socket.write('\r\n');
    await once(socket, 'close');
    assert.match(received, /^HTTP\/1\.1 200 OK\r\n.*"status":"ok"/s);
    assert.deepEqual(await ended, { code: 0, signal: null });
  });
});

suite('a vault with files for HTTPS', needs('openssl'), () => {
  test('serves the files that certbot puts in their place, and keeps the current ones if those are invalid', async (t) => {
    const dir = tempDir(t);
    const first = issue(dir, 'first', { names: 'IP:127.0.0.1' });
    const second = issue(dir, 'second', { names: 'IP:127.0.0.1' });
    const live = join(dir, 'live');
    // As certbot does: symbolic links that are pointed elsewhere.
    const link = (name: string, target: string) => execFileSync('ln', ['-sfn', target, `${live}-${name}`]);
    link('crt', first.certificatePath);
    link('key', first.keyPath);
    const environment = { VAULT_TLS_CERT_FILE: `${live}-crt`, VAULT_TLS_KEY_FILE: `${live}-key` };
    const server = await serve(t, tempDir(t), { environment });
    const before = await visit(server.url + health, { ca: first.certificatePem });
    assert.equal(before.status, 200);
    link('crt', second.certificatePath);
    link('key', second.keyPath);
    assert.equal((await nextAfter(server, before)).leaf.subjectAltName, 'IP Address:127.0.0.1');
    writeFileSync(join(dir, 'broken.crt'), readFileSync(second.certificatePath).subarray(0, 99));
    link('crt', join(dir, 'broken.crt'));
    await eventually('the complaint', () =>
      /"level":"error".*live-crt.*keeping the current one/.test(server.log()) ? true : undefined,
    );
    assert.equal((await visit(server.url + health)).status, 200);
  });
});

suite('serve with HTTPS fails to start', () => {
  test('with conflicting settings or a missing file', async (t) => {
    const files = ['--tls-cert-file', '/a.crt', '--tls-key-file', '/a.key'];
    assert.match(
      await refused(t, ...own, ...files),
      /^vault: --tls-certificate and --tls-cert-file exclude each other\n {2}Serve HTTPS either/,
    );
    assert.match(
      await refused(t, ...own, '--public-url', 'http://vault.example.test'),
      /^vault: --public-url: http:\/\/vault\.example\.test is plain HTTP, but the vault serves HTTPS\n {2}Use --public-url https:/,
    );
    assert.match(
      await refused(t, ...own, '--listen', '127.0.0.1:8443', '--acme-tls-listen', '0.0.0.0:8443'),
      /^vault: --listen and --acme-tls-listen both use port 8443\n {2}Remove --acme-tls-listen/,
    );
    assert.match(
      await refused(t, ...files),
      /^vault: cannot read the HTTPS file \/a\.crt: no such file or directory/,
    );
  });

  test('without a host name for the certificate', async (t) => {
    assert.match(
      await refused(t, ...own, '--listen', '0.0.0.0:0'),
      /^vault: cannot create the HTTPS certificate "vault": the vault does not know its own host name\n {2}Set the URL that clients use, such as --public-url https:/,
    );
  });
});
