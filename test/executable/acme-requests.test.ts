/** Certificates of a real ACME CA for CSRs of clients: ordered, renewed, sent over HTTP, and resumed after a crash. */
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { issuedBy } from '../harness/acme/certificates.ts';
import { type AcmeVault, acmeVault, type Client, frontedVault, needsAcme } from '../harness/acme/vault.ts';
import { opensslKeys, opensslRequest } from '../harness/ca/openssl-requests.ts';
import { eventually } from '../harness/eventually.ts';
import type { RunningVault } from '../harness/processes/vault-process.ts';

const names = 'DNS:www.example.test,DNS:mail.example.test';

function requestFile({ dir }: AcmeVault, file: string, key: readonly string[] = opensslKeys.ec256) {
  const made = opensslRequest({ names, key, subject: '/CN=www.example.test' });
  const path = join(dir, file);
  writeFileSync(path, made.csr);
  return { ...made, path };
}

async function isFor(client: Client, server: RunningVault, key: string): Promise<boolean> {
  const { body } = await client(server, 'web', 'certificate.crt');
  return new X509Certificate(body).checkPrivateKey(createPrivateKey(key));
}

suite('with the CSR of a client', needsAcme(), () => {
  test('an ACME CA issues and renews with the same key until another CSR is sent over HTTP', async (t) => {
    const vault = await acmeVault(t);
    const server = await vault.serve();
    const client = await vault.client();
    const first = requestFile(vault, 'first.csr');
    assert.match(await vault.issue('web', '--csr', first.path), /^web: version 1,/);
    assert(await isFor(client, server, first.key));
    await vault.done('certificate', 'renew', '--name', 'web', '--wait');
    assert(await isFor(client, server, first.key));
    const second = requestFile(vault, 'second.csr', opensslKeys.rsa2048);
    const key = await vault.done(
      'api-key',
      'create',
      '--name=signer',
      '--scope=certificates:sign',
      '--certificate=web',
    );
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/x-pem-file' };
    const sent = await fetch(`${server.url}/api/v1/certificates/web/sign`, {
      method: 'POST',
      headers,
      body: second.csr,
    });
    assert.equal(sent.status, 202, await sent.clone().text());
    const status = `${server.url}${sent.headers.get('Location')}`;
    await eventually('the renewal succeeds', async () => {
      const renewal = (await (await fetch(status, { headers })).json()) as {
        status: string;
        error: string | null;
      };
      assert.notEqual(renewal.status, 'failed', String(renewal.error));
      return renewal.status === 'succeeded' ? true : undefined;
    });
    assert(await isFor(client, server, second.key));
    const secret = await client(server, 'web', 'private.key');
    assert.equal(secret.status, 404);
    assert.equal(JSON.parse(secret.body).code, 'private_key_not_held');
    await vault.done('certificate', 'revoke', '--name', 'web', '--version', '2');
  });

  test('a vault that is killed while it finalizes resumes the order with the same CSR', async (t) => {
    const { vault, front } = await frontedVault(t);
    const server = await vault.serve();
    const held = front.hold('answer', /finalize/i);
    const made = requestFile(vault, 'web.csr');
    await vault.done('certificate', 'create', '--name', 'web', '--issuer', 'pebble', '--csr', made.path);
    await held.reached;
    await server.end('SIGKILL');
    held.release();
    const next = await vault.serve();
    await eventually('the certificate is there', () =>
      vault.query<{ status: string }>('select status from renewals')[0]?.status === 'succeeded'
        ? true
        : undefined,
    );
    assert(await isFor(await vault.client(), next, made.key));
    assert.equal(issuedBy(vault.ca), 1);
    assert.equal(vault.query('select id from renewals').length, 1);
  });
});
