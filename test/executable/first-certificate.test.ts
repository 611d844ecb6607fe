/**
 * The way of a certificate through the executable, as an operator and a client walk it: import, key, download by every
 * name, renewal, revocation, restart.
 */

import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import type {
  CertificateView,
  RenewalView,
  VersionView,
} from '../../src/domain/certificates/certificate-views.ts';
import { type Chain, makeChain } from '../harness/ca/openssl-chain.ts';
import { eventually } from '../harness/eventually.ts';
import { artifactFiles } from '../harness/http/artifact-files.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { type RunningVault, serve, vault } from '../harness/processes/vault-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'first-certificate-'));
const dir = join(folder, 'data');
const skipped = needs('openssl');
const expected: { chain?: Chain; url: string; raw: string } = { url: '', raw: '' };
let server: RunningVault | undefined;

const run = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await vault([...args, '--data-dir', dir]);
  assert.equal(code, 0, stderr);
  return stdout;
};

async function start(): Promise<void> {
  // It lives longer than a test: the hook at the end of the file stops it.
  server = await serve({ after: () => undefined }, dir);
  expected.url = server.url;
}

after(async () => {
  await server?.end('SIGKILL');
  rmSync(folder, { recursive: true });
});

function request(path: string, init: RequestInit = {}, raw = expected.raw): Promise<Response> {
  const headers = { Authorization: `Bearer ${raw}`, ...init.headers };
  return fetch(`${expected.url}/api/v1/certificates${path}`, { ...init, headers });
}

async function json<T>(path: string): Promise<T> {
  const response = await request(path);
  assert.equal(response.status, 200, path);
  return (await response.json()) as T;
}

const certificatesIn = (pem: string) =>
  (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g) ?? []).map(
    (one) => new X509Certificate(one),
  );

function audit(action: string): { actor: string; resource: string; detail: string }[] {
  const database = new BetterSqlite3(join(dir, 'vault.db'), { readonly: true });
  try {
    const query = 'select actor, resource, detail from audit_events where action = ? order by id';
    return database.prepare<[string], ReturnType<typeof audit>[number]>(query).all(action);
  } finally {
    database.close();
  }
}

async function downloadAll(name: string): Promise<Record<string, string>> {
  const bodies: Record<string, string> = {};
  for (const file of artifactFiles) {
    const response = await request(`/${name}/${file}`);
    assert.equal(response.status, 200, file);
    bodies[file] = await response.text();
  }
  return bodies;
}

before(async () => {
  if (skipped.skip !== undefined) return;
  const chain = makeChain(folder);
  const { root, leaf, intermediates } = chain;
  // As a person may have it: shuffled, with the root, with text around and the line ends of Windows.
  const parts = [root, intermediates[0], leaf, intermediates[1]].map(
    (one) => `a comment\n${one.certificatePem}`,
  );
  const shuffled = join(folder, 'shuffled.pem');
  writeFileSync(shuffled, parts.join('\n').replaceAll('\n', '\r\n'));
  assert.equal(
    await run('certificate', 'import', '--name=web', '--fullchain', shuffled, '--private-key', leaf.keyPath),
    'web: version 1\n',
  );
  const rsa = makeChain(folder, { label: 'Rsa', keyAlgorithm: 'rsa2048' });
  await run(
    'certificate',
    'import',
    '--name=rsa',
    '--fullchain',
    rsa.fullchainPath,
    '--private-key',
    rsa.leaf.keyPath,
  );
  await run('certificate', 'create', '--name=local', '--domain=local.test');
  const scopes = ['certificates:read', 'private_keys:read', 'renewals:trigger'].map(
    (scope) => `--scope=${scope}`,
  );
  const raw = await run('api-key', 'create', '--name=client', ...scopes, '--certificate=*');
  assert.match(raw, /^vk_[\w-]{12}\.[\w-]{43}\n$/);
  Object.assign(expected, { chain, raw: raw.trim() });
  await start();
});

test('an imported certificate appears in the list, its metadata and its versions', skipped, async () => {
  const list = await json<CertificateView[]>('');
  assert.deepEqual(
    list.map(({ name }) => name),
    ['local', 'rsa', 'web'],
  );
  const view = await json<CertificateView>('/web');
  assert.deepEqual(view, list[2]);
  assert.deepEqual(
    [view.domains, view.status, view.issuer],
    [['www.example.com', 'example.com'], 'valid', null],
  );
  assert.ok(view.artifacts[0]?.url.startsWith(`${expected.url}/api/v1/`));
  const versions = await json<VersionView[]>('/web/versions');
  assert.deepEqual(versions, [view.current_version]);
  assert.deepEqual(
    audit('certificate.import').map(({ actor, resource }) => [actor, resource]),
    ['web', 'rsa'].map((name) => ['local-cli', `certificate:${name}`]),
  );
  const leaf = new X509Certificate(expected.chain?.leaf.certificatePem ?? '');
  assert.equal(
    versions[0]?.fingerprint_sha256.replaceAll(':', '').toUpperCase(),
    leaf.fingerprint256.replaceAll(':', ''),
  );
});

test(
  'each artifact has the right contents, in order and without the root, and each download is recorded',
  skipped,
  async () => {
    const { leaf, intermediates } = expected.chain ?? assert.fail();
    const earlier = audit('certificate.download').length;
    const bodies = await downloadAll('web');
    const chain = [intermediates[1], intermediates[0]];
    const prints = (pem: string) => certificatesIn(pem).map(({ fingerprint256 }) => fingerprint256);
    const want = (issued: readonly { certificatePem: string }[]) =>
      issued.flatMap((one) => prints(one.certificatePem));
    assert.deepEqual(prints(bodies['certificate.crt'] ?? ''), want([leaf]));
    assert.deepEqual(prints(bodies['chain.crt'] ?? ''), want(chain));
    assert.deepEqual(prints(bodies['fullchain.crt'] ?? ''), want([leaf, ...chain]));
    assert.equal(bodies['fullchain.crt'], `${bodies['certificate.crt']}${bodies['chain.crt']}`);
    assert.ok(createPrivateKey(bodies['private.key'] ?? '').equals(createPrivateKey(leaf.keyPem)));
    assert.match(bodies['private.key'] ?? '', /^-----BEGIN PRIVATE KEY-----\n/);
    assert.equal(bodies['fullchain.pem'], bodies['fullchain.crt']);
    assert.equal(bodies['private-key.pem'], bodies['private.key']);
    for (const body of Object.values(bodies)) assert.doesNotMatch(body, /\r|comment/);
    const events = audit('certificate.download').slice(earlier);
    assert.deepEqual(
      events.map(({ actor, resource, detail }) => [actor, resource, JSON.parse(detail)]),
      artifactFiles.map((artifact) => ['api-key:1:client', 'certificate:web', { artifact, version: 1 }]),
    );
  },
);

test(
  'an API key that is revoked while the server runs is rejected at the next request',
  skipped,
  async () => {
    const options = ['--name=brief', '--scope=certificates:read', '--certificate=web'];
    const raw = (await run('api-key', 'create', ...options)).trim();
    const statuses = [(await request('/web', {}, raw)).status, (await request('/local', {}, raw)).status];
    await run('api-key', 'revoke', '--id=2');
    statuses.push((await request('/web', {}, raw)).status, (await request('/web')).status);
    assert.deepEqual(statuses, [200, 403, 401, 200]);
    const [event] = audit('api_key.revoke');
    assert.deepEqual([event?.actor, event?.resource], ['local-cli', 'api-key:2']);
  },
);

test('a conditional request for an unchanged artifact gets 304 and is not recorded', skipped, async () => {
  const earlier = audit('certificate.download').length;
  for (const file of artifactFiles) {
    const first = await request(`/web/${file}`);
    const etag = first.headers.get('etag') ?? '';
    assert.match(etag, /^"[^"]+"$/);
    await first.arrayBuffer();
    const again = await request(`/web/${file}`, { headers: { 'If-None-Match': etag } });
    assert.deepEqual([again.status, again.headers.get('etag'), await again.text()], [304, etag, '']);
  }
  assert.equal(audit('certificate.download').length, earlier + artifactFiles.length);
});

test('a renewal is queued with 202, succeeds, and the next download is the new pair', skipped, async () => {
  const before = await downloadAll('local');
  const response = await request('/local/renew', { method: 'POST' });
  assert.equal(response.status, 202);
  const { id, certificate } = (await response.json()) as RenewalView;
  assert.equal(response.headers.get('location'), `/api/v1/certificates/${certificate}/renewals/${id}`);
  const renewal = await eventually('the renewal has ended', async () => {
    const view = await json<RenewalView>(`/local/renewals/${id}`);
    return /queued|running/.test(view.status) ? undefined : view;
  });
  assert.deepEqual([renewal.status, renewal.version, renewal.error], ['succeeded', 2, null]);
  const now = await downloadAll('local');
  assert.notEqual(now['private.key'], before['private.key']);
  const [leaf, intermediate] = certificatesIn(now['fullchain.crt'] ?? '');
  assert.ok(leaf?.checkPrivateKey(createPrivateKey(now['private.key'] ?? '')));
  assert.ok(intermediate && leaf?.verify(intermediate.publicKey));
  assert.equal(audit('renewal.request').at(-1)?.actor, 'api-key:1:client');
  assert.equal(
    (await request('/web/renew', { method: 'POST' })).status,
    409,
    'an imported one has no issuer',
  );
});

test('all certificates and their artifacts are identical after a restart', skipped, async () => {
  const everything = async () => ({
    list: (await json<CertificateView[]>('')).map(({ artifacts: _, ...rest }) => rest),
    web: await downloadAll('web'),
    rsa: await downloadAll('rsa'),
    local: await downloadAll('local'),
    etag: (await request('/web/private.key', { method: 'HEAD' })).headers.get('etag'),
  });
  const earlier = await everything();
  assert.deepEqual(await server?.end(), { code: 0, signal: null });
  await start();
  assert.deepEqual(await everything(), earlier);
});
