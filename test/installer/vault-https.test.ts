/** The client installer with the vault's own HTTPS, verified from the first request on. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { type Machine, machine } from '../harness/client/installer.ts';
import { usual } from '../harness/client/vault.ts';
import { eventually } from '../harness/eventually.ts';
import { visit } from '../harness/http/https-client.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { both, everyTool } from './places.ts';

const run = promisify(execFile);

/** A vault with its own certificate, a certificate `web`, and a key for it. */
async function secureVault(t: TestContext) {
  const dataDir = tempDir(t);
  const done = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await vault([...args, '--data-dir', dataDir]);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  const server = await serve(t, dataDir, { args: ['--tls-certificate', 'vault'] });
  await done('certificate', 'create', '--name', 'web', '--domain', 'www.example.test');
  const scopes = ['--scope', 'certificates:read', '--scope', 'private_keys:read'];
  const key = await done('api-key', 'create', '--name', 'client', '--certificate', 'web', ...scopes);
  const shown = await done('certificate', 'show', '--name', 'vault');
  const pin = /^Public key pin +(\S+)$/m.exec(shown)?.[1] ?? assert.fail(shown);
  const fetched = (path: string, ...trust: readonly string[]) =>
    run('curl', ['-fsS', ...trust, server.url + path]).then(({ stdout }) => stdout);
  return { server, done, pin, fetched, environment: { SERVICE_API_KEY: key } };
}

function assertPair(client: Machine): X509Certificate {
  const certificate = new X509Certificate(client.file('tls.crt'));
  assert(certificate.checkPrivateKey(createPrivateKey(client.file('tls.key'))));
  return certificate;
}

test(
  'one pin works from the first request on and across renewals of both certificates',
  needs('curl'),
  async (t) => {
    const { server, done, pin, fetched, environment } = await secureVault(t);
    const client = machine(t);
    const input = await fetched('/client/install.sh', '-k', '--pinnedpubkey', pin);
    assert(input.includes(server.url), 'the script lacks the HTTPS address');
    const installed = await client.run([...usual(client), '--server', server.url, '--pin', pin], {
      environment,
      input,
    });
    assert.equal(installed.code, 0, installed.stderr);
    const before = assertPair(client);
    await done('certificate', 'renew', '--name', 'vault', '--wait');
    await done('certificate', 'renew', '--name', 'web', '--wait');
    const next = await client.run(['--run']);
    assert.equal(next.code, 0, next.stderr);
    assert.notEqual(assertPair(client).serialNumber, before.serialNumber);
  },
);

test(
  'the root of the private CA, downloaded with the pin, is enough from then on',
  needs('curl'),
  async (t) => {
    const { server, pin, fetched, environment } = await secureVault(t);
    const client = machine(t);
    const ca = join(tempDir(t), 'ca.crt');
    writeFileSync(ca, await fetched('/client/ca.crt', '-k', '--pinnedpubkey', pin));
    const trust = ['--server', server.url, '--ca-file', ca];
    const installed = await client.run([...usual(client), ...trust], { environment });
    assert.equal(installed.code, 0, installed.stderr);
    assertPair(client);
    const untrusted = machine(t);
    const refused = await untrusted.run([...usual(untrusted), '--server', server.url], { environment });
    assert.equal(refused.code, 10, refused.stderr);
    assert.match(refused.stderr, /its CA is unknown\nTry: --ca-file .*, or --pin; "vault certificate show/);
  },
);

test(
  'a job with the root of the private CA keeps its trust when the vault rotates that CA',
  needs('curl'),
  async (t) => {
    const { server, done, pin, fetched, environment } = await secureVault(t);
    const client = machine(t);
    const ca = join(tempDir(t), 'ca.crt');
    const before = await fetched('/client/ca.crt', '-k', '--pinnedpubkey', pin);
    writeFileSync(ca, before);
    const trust = ['--server', server.url, '--ca-file', ca];
    const installed = await client.run([...usual(client), ...trust], { environment });
    assert.equal(installed.code, 0, installed.stderr);
    await done('ca', 'rotate');
    await done('certificate', 'renew', '--name', 'vault', '--wait');
    await done('certificate', 'renew', '--name', 'web', '--wait');
    const next = await client.run(['--run']);
    assert.equal(next.code, 0, next.stderr);
    assert.match(next.stderr, /: the roots of the private CA changed; updated \S+ca\.pem\n/);
    assertPair(client);
    const kept = readFileSync(join(dirname(client.copy()), 'ca.pem'), 'utf8');
    const served = await fetched('/client/ca.crt', '-k', '--pinnedpubkey', pin);
    assert(kept.endsWith(served) && served !== before, kept);
    assert.equal(rootsIn(kept).length, 2);
    assert(rootsIn(kept).includes(rootsIn(before)[0] ?? ''));
    const again = await client.run(['--run']);
    assert.equal(again.code, 0, again.stderr);
  },
);

/** The fingerprints of the certificates in a PEM file. */
function rootsIn(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block).fingerprint256);
}

test(
  'a job with the http address of a vault that serves HTTPS now reports the https address',
  needs('curl'),
  async (t) => {
    const { server, environment } = await secureVault(t);
    const client = machine(t);
    const plain = server.url.replace('https:', 'http:');
    const refused = await client.run([...usual(client), '--server', plain], { environment });
    assert.equal(refused.code, 10, refused.stderr);
    assert.match(refused.stderr, /unexpected status 400: This port requires HTTPS: .* revoke the key/);
    assert(refused.stderr.includes(`\nTry: --server ${server.url}\n`), refused.stderr);
  },
);

for (const [tool, isThere] of everyTool().filter(([name]) => !name.startsWith('nc'))) {
  test(
    `a key that is bound to a client certificate works with its files where they are, with ${tool}`,
    both(isThere, needs('curl')),
    async (t) => {
      const { server, done, pin, fetched } = await secureVault(t);
      const client = machine(t, { tool });
      const ca = join(client.home, 'ca.pem');
      writeFileSync(ca, await fetched('/client/ca.crt', '-k', '--pinnedpubkey', pin));
      await done(
        'certificate',
        'create',
        '--name',
        'host',
        '--domain',
        'host.example.test',
        '--usage',
        'client',
      );
      const words =
        'api-key create --name bound --scope certificates:read --scope private_keys:read --certificate web';
      const key = await done(...words.split(' '), '--client-certificate', 'host');
      const files = join(client.home, 'host');
      const exported = () => done('certificate', 'export', '--name', 'host', '--out', files, '--force');
      await exported();
      const trust = ['--server', server.url, '--ca-file', ca];
      const environment = { SERVICE_API_KEY: key };
      const alone = await client.run([...usual(client), ...trust], { environment });
      assert.equal(alone.code, 10, alone.stderr);
      assert.match(alone.stderr, /client certificate/);
      const certificate = join(files, 'fullchain.crt');
      const pair = {
        cert: readFileSync(certificate, 'utf8'),
        key: readFileSync(join(files, 'private.key'), 'utf8'),
      };
      const headers = { Authorization: `Bearer ${key}` };
      await eventually('the vault requests certificates', async () => {
        const { status } = await visit(`${server.url}/api/v1/certificates/web/private.key`, {
          ...pair,
          headers,
        });
        return status === 200;
      });
      const own = ['--client-cert', certificate, '--client-key', join(files, 'private.key')];
      const installed = await client.run([...usual(client), ...trust, ...own], { environment });
      assert.equal(installed.code, 0, installed.stderr);
      const before = assertPair(client);
      await done('certificate', 'renew', '--name', 'host', '--wait');
      await done('certificate', 'renew', '--name', 'web', '--wait');
      await exported();
      const next = await client.run(['--run']);
      assert.equal(next.code, 0, next.stderr);
      assert.notEqual(assertPair(client).serialNumber, before.serialNumber);
      rmSync(certificate);
      const missing = await client.run(['--run']);
      assert.equal(missing.code, 1);
      assert.match(missing.stderr, /--client-cert: cannot read /);
      assert.match(
        (await client.run(['--status'])).stdout,
        /fullchain\.crt, which the job presents, is missing/,
      );
    },
  );
}
