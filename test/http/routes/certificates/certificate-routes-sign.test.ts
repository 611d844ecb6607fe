/**
 * Certificates for CSRs over HTTP: the client holds the private key, sends a request, and the vault never has the key.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { claimRenewal } from '../../../../src/domain/renewals/renewal-claim.ts';
import { runRenewal } from '../../../../src/domain/renewals/renewal-run.ts';
import type { Vault } from '../../../../src/domain/vault.ts';
import { derOf, opensslKeys, opensslRequest } from '../../../harness/ca/openssl-requests.ts';
import { outside } from '../../../harness/database/outside-database.ts';
import { administration } from '../../../harness/http/administration.ts';
import { checkedServer, codeOf } from '../../../harness/http/checked.ts';
import { eventsOf, importOne, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';
import { needs } from '../../../harness/processes/missing-program.ts';

const list = '/api/v1/certificates';
const db = `${list}/db`;
const names = 'DNS:db.example.test';
const pemType = { 'Content-Type': 'application/x-pem-file' };

type Problem = { code: string; detail: string; errors?: { path: string; message: string }[] };
type Certificate = {
  key_holder: string;
  key_type: string;
  domains: string[];
  artifacts: { file: string }[];
  current_version: { version: number; key_holder: string } | null;
};
type Queued = { id: number; certificate: string; status: string };

/** A server with the certificate db, whose key the vault holds, and a key that may sign. */
async function prepared(t: Parameters<typeof checkedServer>[0]) {
  const server = await checkedServer(t);
  await makeCertificate(server.vault, 'db');
  const signer = await makeKey(server.vault, {
    name: 'signer',
    scopes: ['certificates:sign'],
    certificates: ['db'],
  });
  const reader = await makeKey(server.vault, { name: 'reader' });
  const send = (
    body: string | Buffer,
    headers: Record<string, string> = pemType,
    key = signer.raw,
    path = db,
  ) => server.get(`${path}/sign`, key, { method: 'POST', headers, body });
  const signed = async (body: string | Buffer, headers?: Record<string, string>): Promise<Queued> => {
    const response = await send(body, headers);
    assert.equal(response.status, 202, await response.clone().text());
    return (await response.json()) as Queued;
  };
  const refused = async (status: number, body: string | Buffer, headers?: Record<string, string>) => {
    const response = await send(body, headers);
    assert.equal(response.status, status, await response.clone().text());
    return (await response.json()) as Problem;
  };
  const text = async (file: string) => {
    const response = await server.get(`${db}/${file}`, reader.raw);
    assert.equal(response.status, 200, `${file}: ${await response.clone().text()}`);
    return response.text();
  };
  return { server, signer, reader, send, signed, refused, text };
}

async function runNext(vault: Vault): Promise<void> {
  const claimed = await claimRenewal(vault, 'test');
  assert(claimed);
  await runRenewal(vault, claimed, new AbortController().signal);
}

function isFor(certificate: string, key: string): boolean {
  return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
}

suite('a certificate that is created for a CSR', needs('openssl'), () => {
  test('has the key and the names of the request, and says that the client holds the key', async (t) => {
    const { server, expect } = await administration(t);
    for (const [name, key] of Object.entries(opensslKeys)) {
      const host = `${name}.example.test`;
      const { csr, key: own } = opensslRequest({ key, names: `DNS:${host},IP:192.0.2.1` });
      const { certificate } = await expect<{ certificate: Certificate }>(201, 'POST', list, { name, csr });
      const { key_holder, key_type, domains, current_version, artifacts } = certificate;
      assert.deepEqual([key_holder, key_type, domains], ['client', name, [host, '192.0.2.1']]);
      assert.deepEqual([current_version?.version, current_version?.key_holder], [1, 'client']);
      assert.deepEqual(
        artifacts.map(({ file }) => file),
        ['certificate.crt', 'chain.crt', 'fullchain.crt'],
      );
      const reader = await makeKey(server.vault, { name: `reader of ${name}` });
      const leaf = await (await server.get(`${list}/${name}/certificate.crt`, reader.raw)).text();
      assert(isFor(leaf, own), name);
      const settings = await expect(200, 'GET', `${list}/${name}/settings`);
      assert.equal(settings.csr, csr);
    }
    const [row] = outside(server.dataDir, (database) =>
      database.prepare('select length(sealed_private_key) as size from certificate_versions').all(),
    ) as { size: number }[];
    assert.equal(row?.size, 0);
    const details = eventsOf(server.dataDir, 'certificate.create').map(({ detail }) => String(detail.csr));
    assert(details.every((pin) => /^sha256\/\/\S{44}$/.test(pin)) && details.length === 5);
  });

  test('may list the domains of the CSR in any order, but no others', async (t) => {
    const { expect } = await administration(t);
    const { csr } = opensslRequest({ names: 'DNS:a.example.test,DNS:b.example.test' });
    const domains = ['b.example.test', 'a.example.test'];
    const { certificate } = await expect<{ certificate: Certificate }>(201, 'POST', list, {
      name: 'ab',
      csr,
      domains,
    });
    assert.deepEqual(certificate.domains, domains);
    const other = { name: 'c', csr, domains: ['a.example.test', 'c.example.test'] };
    const problem = await expect<Problem>(400, 'POST', list, other);
    assert.match(problem.detail, /only the CSR has b\.example\.test, and the CSR lacks c\.example\.test/);
    assert.equal(problem.errors?.[0]?.path, 'csr');
  });

  test('rejects key settings, invalid CSRs and CSRs that its ACME CA would reject', async (t) => {
    const { expect, server } = await administration(t);
    const { csr } = opensslRequest({ names });
    const refused = (body: object) => expect<Problem>(400, 'POST', list, { name: 'x', csr, ...body });
    assert.match(
      (await refused({ key_type: 'rsa2048' })).detail,
      /^The setting key_type \(--key-type\) does not apply/i,
    );
    assert.match((await refused({ reuse_key: true })).detail, /does not apply to a certificate with a CSR/);
    assert.match((await refused({ csr: 'nonsense' })).detail, /csr has no PEM block/);
    assert.match((await refused({ csr: 'x'.repeat(100_000) })).detail, /csr is larger than 64 KiB/);
    const nameless = opensslRequest({ subject: '/CN=alice' }).csr;
    assert.match((await refused({ csr: nameless })).detail, /at least one domain is required/i);
    const { silentIssuer } = await import('../../../harness/issuance/renewal-fixtures.ts');
    await silentIssuer(server.vault, 'public');
    const person = opensslRequest({ subject: '/CN=alice', names }).csr;
    assert.match(
      (await refused({ csr: person, issuer: 'public' })).detail,
      /common name \("alice"\) is not one of its names/,
    );
    const edwards = opensslRequest({ key: opensslKeys.ed25519, names }).csr;
    assert.match((await refused({ csr: edwards, issuer: 'public' })).detail, /Ed25519/);
    const { certificate } = await expect<{ certificate: Certificate }>(201, 'POST', list, {
      name: 'y',
      csr: nameless,
      subject: ['CN=alice'],
    });
    assert.deepEqual(certificate.domains, []);
  });

  test('returns 404 for files with a private key, after checking authorization', async (t) => {
    const { server, expect } = await administration(t);
    await expect(201, 'POST', list, { name: 'db', csr: opensslRequest({ names }).csr });
    const all = await makeKey(server.vault, { name: 'all' });
    const some = await makeKey(server.vault, { name: 'some', scopes: ['certificates:read'] });
    const headers = { 'Keystore-Password': 'changeit' };
    for (const file of [
      'private.key',
      'private-key.pem',
      'combined.pem',
      'keystore.p12',
      'keystore.p12?encryption=legacy',
    ]) {
      for (const method of ['GET', 'HEAD']) {
        const response = await server.get(`${db}/${file}`, all.raw, {
          method,
          headers: { ...headers, 'If-None-Match': '*' },
        });
        assert.equal(response.status, 404, file);
        if (method === 'GET') assert.equal(await codeOf(response), 'private_key_not_held', file);
      }
      assert.equal((await server.get(`${db}/${file}`, some.raw, { headers })).status, 403, file);
      assert.equal((await server.get(`${db}/${file}`, undefined, { headers })).status, 401, file);
    }
    assert.equal(await codeOf(await server.get(`${db}/keystore.p12`, all.raw)), 'private_key_not_held');
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.download'), []);
    const archive = await server.get(`${db}/archive.tar`, all.raw, { headers });
    assert.equal(archive.status, 200);
    const input = Buffer.from(await archive.arrayBuffer());
    const files = execFileSync('tar', ['-tf', '-'], { input, encoding: 'utf8' }).trim().split('\n');
    assert.deepEqual(files.sort(), ['certificate.crt', 'certificate.der', 'chain.crt', 'fullchain.crt']);
    for (const file of ['certificate.crt', 'chain.crt', 'fullchain.crt', 'certificate.der']) {
      assert.equal((await server.get(`${db}/${file}`, all.raw)).status, 200, file);
    }
  });
});

suite('a CSR that a client sends', needs('openssl'), () => {
  test('creates a version with its key from PEM, DER or JSON, and the API key can follow the renewal', async (t) => {
    const { server, signer, signed, text } = await prepared(t);
    const before = await text('private.key');
    const made = opensslRequest({ names });
    const bodies: [string | Buffer, string][] = [
      [made.csr, 'application/x-pem-file'],
      [derOf(made.csr), 'application/pkcs10'],
      [JSON.stringify({ csr: made.csr }), 'application/json'],
      [made.csr, 'Application/X-PEM-File; charset=utf-8'],
    ];
    const renewals: Queued[] = [];
    for (const [body, type] of bodies) renewals.push(await signed(body, { 'Content-Type': type }));
    assert.equal(new Set(renewals.map(({ id }) => id)).size, 1);
    const path = `${db}/renewals/${renewals[0]?.id}`;
    const status = async () =>
      (await (await server.get(path, signer.raw)).json()) as { status: string; version: number };
    assert.equal((await status()).status, 'queued');
    await runNext(server.vault);
    assert.deepEqual([(await status()).status, (await status()).version], ['succeeded', 2]);
    assert(isFor(await text('certificate.crt'), made.key));
    assert.equal(await text('private.key?version=1'), before);
    const gone = await server.get(`${db}/private.key`, (await makeKey(server.vault)).raw);
    assert.equal(await codeOf(gone), 'private_key_not_held');
    const [event] = eventsOf(server.dataDir, 'certificate.update');
    assert.equal(event?.actor, signer.actor);
    assert.match(String(event?.detail.csr), /^sha256\/\//);
  });

  test('is used for every renewal until another one comes', async (t) => {
    const { server, signed, text } = await prepared(t);
    const first = opensslRequest({ names });
    await signed(first.csr);
    await runNext(server.vault);
    const { renewCertificate } = await import('../../../harness/http/fixtures.ts');
    await renewCertificate(server.vault, 'db');
    assert(isFor(await text('certificate.crt'), first.key));
    const second = opensslRequest({ names, key: opensslKeys.rsa2048 });
    await signed(second.csr);
    await runNext(server.vault);
    assert(isFor(await text('certificate.crt'), second.key));
    assert(isFor(await text('certificate.crt?version=3'), first.key));
  });

  test('replaces the CSR of a queued renewal, and fails a running one with another CSR', async (t) => {
    const { server, signer, signed, text } = await prepared(t);
    const { vault } = server;
    const [one, two, three] = [1, 2, 3].map(() => opensslRequest({ names }));
    assert(one && two && three);
    const queued = await signed(one.csr);
    assert.equal((await signed(two.csr)).id, queued.id);
    const claimed = await claimRenewal(vault, 'slow');
    assert.equal(claimed?.renewal.id, queued.id);
    const next = await signed(three.csr);
    assert.notEqual(next.id, queued.id);
    assert.equal((await signed(three.csr)).id, next.id);
    const ended = (await (await server.get(`${db}/renewals/${queued.id}`, signer.raw)).json()) as {
      status: string;
      error: string;
    };
    assert.deepEqual([ended.status, ended.error], ['failed', 'Superseded: the CSR was changed.']);
    assert(claimed);
    await runRenewal(vault, claimed, new AbortController().signal);
    await runNext(vault);
    assert(isFor(await text('certificate.crt'), three.key));
    assert.equal(await claimRenewal(vault, 'none'), undefined);
  });

  test('is rejected for other names, missing scope, size or content type, and changes nothing', async (t) => {
    const { server, send, refused, reader } = await prepared(t);
    const { csr } = opensslRequest({ names });
    const wider = opensslRequest({ names: `${names},DNS:evil.example.test` });
    const problem = await refused(400, wider.csr);
    assert.match(
      problem.detail,
      /domains of the CSR are not those of the certificate: only the CSR has evil\.example\.test/,
    );
    assert.equal(problem.code, 'invalid_request');
    assert.match(
      (await refused(400, opensslRequest({ names: 'DNS:x.example.test' }).csr)).detail,
      /lacks db\.example\.test/,
    );
    assert.match((await refused(400, 'nonsense')).detail, /csr has no PEM block/);
    assert.match(
      (await refused(400, Buffer.from('3000', 'hex'), { 'Content-Type': 'application/pkcs10' })).detail,
      /csr is damaged/,
    );
    assert.match(
      (await refused(400, csr, { 'Content-Type': 'text/plain' })).detail,
      /Content-Type: application\/x-pem-file/,
    );
    assert.equal((await refused(413, csr + ' '.repeat(100_000))).code, 'payload_too_large');
    assert.equal((await refused(400, '')).code, 'invalid_request');
    const trigger = await makeKey(server.vault, {
      name: 'trigger',
      scopes: ['certificates:read', 'private_keys:read', 'renewals:trigger'],
    });
    assert.equal((await send(csr, pemType, trigger.raw)).status, 403);
    assert.equal((await send(csr, pemType, '')).status, 401);
    assert.equal((await send(csr, pemType, undefined, `${list}/other`)).status, 403);
    assert.equal((await send(csr, pemType, reader.raw, `${list}/other`)).status, 404);
    assert.equal((await send(csr, pemType, 'vk_x.y')).status, 401);
    const shown = (await (await server.get(db, reader.raw)).json()) as Certificate;
    assert.deepEqual([shown.key_holder, shown.current_version?.version], ['vault', 1]);
    assert.equal(await claimRenewal(server.vault, 'none'), undefined);
  });

  test('does not let a key with only certificates:sign read or renew the certificate', async (t) => {
    const { server, signer } = await prepared(t);
    for (const file of ['', '/certificate.crt', '/private.key', '/versions']) {
      assert.equal((await server.get(`${db}${file}`, signer.raw)).status, 403, file);
    }
    assert.equal((await server.get(`${db}/renew`, signer.raw, { method: 'POST' })).status, 403);
    assert.equal((await server.get(`${db}/renewals/1`, signer.raw)).status, 404);
    assert.equal((await server.get(`${list}/other/renewals/1`, signer.raw)).status, 403);
  });

  test('is rejected for imported and disabled certificates, and for the key of a revoked version', async (t) => {
    const { server, expect } = await administration(t);
    const { vault } = server;
    await importOne(vault, 'imported', { chain: true });
    const { csr } = opensslRequest({ names });
    const sign = (name: string, body = csr) =>
      server.get(`${list}/${name}/sign`, key.raw, { method: 'POST', headers: pemType, body });
    const key = await makeKey(vault);
    assert.equal(await codeOf(await sign('imported')), 'not_renewable');
    await expect(201, 'POST', list, { name: 'db', csr });
    await expect(200, 'POST', `${db}/revoke`, { reason: 'keyCompromise' });
    for (const request of [csr, opensslRequest({ names }).csr]) {
      const isOld = request === csr;
      const response = await sign('db', request);
      assert.equal(response.status, isOld ? 400 : 202, await response.clone().text());
      if (isOld)
        assert.match(
          ((await response.json()) as Problem).detail,
          /key of the CSR is that of the current version, which was revoked/,
        );
    }
    await runNext(vault);
    await expect(200, 'PATCH', db, { disabled: true });
    assert.match(((await (await sign('db')).json()) as Problem).detail, /disabled/);
  });
});
