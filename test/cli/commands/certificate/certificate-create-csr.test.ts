/** `vault certificate create --csr` and `update --csr`: certificates whose private key never enters the vault. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { derOf, opensslKeys, opensslRequest } from '../../../harness/ca/openssl-requests.ts';
import { needsPostgres } from '../../../harness/postgres/binaries.ts';
import { postgresServer } from '../../../harness/postgres/postgres.ts';
import { commandLine, commandWords } from '../../../harness/processes/command-line.ts';
import { quickKeytool } from '../../../harness/processes/java.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { serve, vault } from '../../../harness/processes/vault-process.ts';

const names = 'DNS:db.example.test';

type Shown = {
  key_holder: string;
  key_type: string;
  domains: string[];
  current_version: { version: number };
};

/** A vault with the certificate db for a request. */
async function withRequest(t: TestContext) {
  const line = commandLine(t);
  const made = opensslRequest({ names });
  const csr = line.file(made.csr, 'db.csr');
  await line.done('certificate', 'create', '--name=db', '--csr', csr);
  const show = () => line.json<Shown>('certificate', 'show', 'db');
  const printed = async (file: string, ...args: readonly string[]) =>
    (await line.done('certificate', 'export', 'db', '--out=-', `--file=${file}`, ...args)).stdout;
  const isFor = async (key: string) =>
    new X509Certificate(await printed('certificate.crt')).checkPrivateKey(createPrivateKey(key));
  return { ...line, ...made, csr, show, printed, isFor };
}

/** Checks the chain with OpenSSL, as strictly as it can. */
function verify(folder: string, fullchain: string): string {
  const args = [
    'verify',
    '-x509_strict',
    '-CAfile',
    `${folder}/root.pem`,
    '-untrusted',
    fullchain,
    fullchain,
  ];
  return execFileSync('openssl', args, { encoding: 'utf8' });
}

suite('a CSR', needs('openssl'), () => {
  test('creates a certificate that is exported without a key; files that need the key are rejected', async (t) => {
    const { done, refused, show, isFor, key, file, data, holds } = await withRequest(t);
    assert(await isFor(key));
    const { key_holder, domains, key_type } = await show();
    assert.deepEqual([key_holder, domains, key_type], ['client', ['db.example.test'], 'ec256']);
    assert.match((await done('certificate', 'show', 'db')).stdout, /Private key +held by the client/);
    const out = join(dirname(data), 'out');
    await done('certificate', 'export', 'db', '--out', out);
    assert.deepEqual(readdirSync(out).sort(), ['certificate.crt', 'chain.crt', 'fullchain.crt']);
    const password = file('changeit\n');
    for (const secret of ['private.key', 'private-key.pem', 'combined.pem', 'keystore.p12']) {
      const args = secret === 'keystore.p12' ? ['--keystore-password-file', password] : [];
      await refused(
        ['certificate', 'export', 'db', '--out', join(out, secret), '--file', secret, ...args],
        /The client holds the private key of this certificate/,
      );
      assert(!existsSync(join(out, secret)));
    }
    assert(!holds(createPrivateKey(key).export({ type: 'pkcs8', format: 'der' })));
  });

  test('is rejected when it contradicts the options, is too large, is invalid or has a weak key', async (t) => {
    const { refused, file } = commandLine(t);
    const { csr, key } = opensslRequest({ names });
    const create = (path: string, ...args: readonly string[]) => [
      'certificate',
      'create',
      '--name=x',
      '--csr',
      path,
      ...args,
    ];
    const path = file(csr);
    await refused(create(path, '--key-type=ec256'), /--csr and --key-type exclude each other/, 2);
    await refused(create(path, '--reuse-key'), /reuse_key \(--reuse-key\) does not apply/);
    await refused(
      create(path, '--domain=a.test'),
      /only the CSR has db\.example\.test, and the CSR lacks a\.test/,
    );
    await refused(create(file('x'.repeat(100_000))), /csr is larger than 64 KiB/);
    await refused(create(file(key)), /comes with a private key/);
    await refused(create(file(derOf(csr).subarray(0, 50))), /csr is damaged/);
    await refused(create('/does/not/exist'), /no such file/i);
    await refused(
      create(file(opensslRequest({ key: ['-newkey', 'rsa:1024'], names }).csr)),
      /RSA key of 1024 bits/,
    );
  });

  test('from GnuTLS or Java is accepted, and OpenSSL verifies the issued chain', {
    ...needs('certtool'),
    ...needs('keytool'),
  }, async (t) => {
    const { data, done, file, printed } = await withRequest(t);
    const folder = dirname(data);
    const template = file(
      'cn = gnu.example.test\ndns_name = gnu.example.test\nip_address = 192.0.2.7\ntls_www_server\n',
    );
    const inFolder = (name: string) => join(folder, name);
    const quiet = { stdio: 'pipe' } as const;
    for (const [name, kind] of [
      ['gnu-ec', '--ecdsa'],
      ['gnu-rsa', '--rsa'],
      ['gnu-ed', '--key-type=ed25519'],
    ] as const) {
      execFileSync('certtool', ['--generate-privkey', kind, '--outfile', inFolder(`${name}.key`)], quiet);
      const request = [
        '--generate-request',
        '--load-privkey',
        inFolder(`${name}.key`),
        '--template',
        template,
      ];
      execFileSync('certtool', [...request, '--outfile', inFolder(`${name}.csr`)], quiet);
    }
    const store = ['-keystore', inFolder('store.p12'), '-storepass', 'changeit', '-alias'];
    for (const [name, ...how] of [
      ['java-rsa', '-keyalg', 'RSA'],
      ['java-ec', '-keyalg', 'EC', '-groupname', 'secp384r1'],
    ] as const) {
      execFileSync(
        'keytool',
        [...quickKeytool, '-genkeypair', ...store, name, ...how, '-dname', 'CN=java.example.test'],
        quiet,
      );
      const san = ['-ext', 'SAN=dns:java.example.test,uri:https://java.example.test/'];
      execFileSync(
        'keytool',
        [...quickKeytool, '-certreq', ...store, name, ...san, '-file', inFolder(`${name}.csr`)],
        quiet,
      );
    }
    const server = await serve(t, data);
    const root = await (await fetch(`${server.url}/client/ca.crt`)).text();
    file(root, 'root.pem');
    for (const name of ['gnu-ec', 'gnu-rsa', 'gnu-ed', 'java-rsa', 'java-ec']) {
      await done('certificate', 'create', '--name', name, '--csr', inFolder(`${name}.csr`));
      const fullchain = file(
        (await done('certificate', 'export', name, '--out=-', '--file=fullchain.crt')).stdout,
      );
      assert.match(verify(folder, fullchain), /: OK/, name);
    }
    assert.match(verify(folder, file(await printed('fullchain.crt'))), /: OK/);
  });

  test('can be replaced, with different domains only if --domain changes with it', async (t) => {
    const { done, refused, show, file, isFor } = await withRequest(t);
    const update = (...args: readonly string[]) => ['certificate', 'update', 'db', ...args];
    const other = opensslRequest({ names, key: opensslKeys.rsa2048 });
    const { stdout } = await done(...update('--csr', file(other.csr), '--wait'));
    assert.match(stdout, /^db: version 2,/);
    assert(await isFor(other.key));
    assert.equal((await show()).key_type, 'rsa2048');
    const wider = file(opensslRequest({ names: `${names},DNS:b.example.test` }).csr);
    await refused(update('--csr', wider), /only the CSR has b\.example\.test/);
    await refused(update('--domain=b.example.test'), /the CSR lacks b\.example\.test/);
    await done(...update('--csr', wider, '--domain=b.example.test', '--domain=db.example.test', '--wait'));
    assert.deepEqual((await show()).domains, ['b.example.test', 'db.example.test']);
    await refused(update('--key-type=ec384'), /key_type \(--key-type\) does not apply.*\n.*--csr none/s);
    await refused(update('--reuse-key'), /reuse_key \(--reuse-key\) does not apply/);
    await refused(update('--rotate-key'), /rotate_key \(--rotate-key\) does not apply/);
    assert.equal((await show()).current_version.version, 3);
  });

  test('replaces a key generated by the vault, and --csr none switches back', async (t) => {
    const { done, file, refused } = commandLine(t);
    const { csr } = opensslRequest({ names: 'DNS:web.test' });
    await done(...commandWords('certificate create --name web --domain web.test --reuse-key'));
    const key = async (...args: readonly string[]) =>
      (await done('certificate', 'export', 'web', '--out=-', '--file=private.key', ...args)).stdout;
    assert.match(await key(), /PRIVATE KEY/);
    await done('certificate', 'update', 'web', '--rotate-key');
    await done('certificate', 'update', 'web', '--csr', file(csr), '--wait');
    await refused(['certificate', 'export', 'web', '--out=-', '--file=private.key'], /The client holds/);
    await done(...commandWords('certificate update web --csr none --key-type ec384 --wait'));
    assert.equal(createPrivateKey(await key()).asymmetricKeyDetails?.namedCurve, 'secp384r1');
  });
});

suite('a certificate created from a CSR', needs('openssl'), () => {
  test('survives master key rotation, deletion and undeletion, and a restore from a backup', async (t) => {
    const { done, key, isFor, data, run } = await withRequest(t);
    await done('master-key', 'rotate');
    assert.match((await done('master-key', 'status')).stdout, /current .*2 ca_certificates/);
    await done('certificate', 'delete', 'db');
    await done('master-key', 'rotate');
    await done('certificate', 'undelete', 'db');
    assert(await isFor(key));
    await done('certificate', 'renew', 'db', '--wait');
    assert(await isFor(key));
    const backup = join(dirname(data), 'vault.backup');
    await done('backup', backup);
    const other = join(dirname(data), 'restored');
    const masterKey = join(data, 'master.key');
    const elsewhere = ['--data-dir', other, '--master-key-file', masterKey];
    const restored = await vault(['restore', backup, ...elsewhere]);
    assert.equal(restored.code, 0, restored.stderr);
    const { stdout, stderr } = await vault([
      ...['certificate', 'export', 'db', '--out=-', '--file=certificate.crt'],
      ...elsewhere,
    ]);
    assert.equal(stderr, '');
    assert(new X509Certificate(stdout).checkPrivateKey(createPrivateKey(key)));
    assert.doesNotMatch((await run('doctor')).stdout, /FAILED +(database|master-key|certificates)/);
  });

  test('is renewed with its CSR after a move to PostgreSQL', needsPostgres(), async (t) => {
    const { done, key } = await withRequest(t);
    const url = await (await postgresServer()).createDatabase();
    await done('database', 'copy', '--to', url);
    const place = ['--database', url];
    await done('certificate', 'renew', 'db', '--wait', ...place);
    const { stdout } = await done(
      'certificate',
      'export',
      'db',
      '--out=-',
      '--file=certificate.crt',
      ...place,
    );
    assert(new X509Certificate(stdout).checkPrivateKey(createPrivateKey(key)));
    await done('master-key', 'rotate', ...place);
  });

  test('is unchanged when its exported document is applied; a new CSR in the document is one change', async (t) => {
    const { done, file, json, refused } = await withRequest(t);
    const document = (await done('export')).stdout;
    assert.match(document, /csr: \|\n +-----BEGIN CERTIFICATE REQUEST-----/);
    assert.doesNotMatch(document, /key_type|reuse_key/);
    type Applied = { changes: { name: string }[] };
    const apply = (text: string) => json<Applied>('apply', '-f', file(text));
    assert.deepEqual((await apply(document)).changes, []);
    const silent = document.replace(/ +csr: \|\n(?: {6}.*\n)+/, '');
    assert.doesNotMatch(silent, /csr/);
    assert.deepEqual((await apply(silent)).changes, []);
    const other = opensslRequest({ names });
    const indented = other.csr.trim().replaceAll(/^/gm, '      ');
    const changed = `${silent}    csr: |\n${indented}\n`;
    assert.match(
      (await done('apply', '-f', file(changed), '--dry-run')).stdout,
      /csr: CSR of the key sha256\/\/\S+ → CSR of the key sha256\/\//,
    );
    assert.equal((await apply(changed)).changes.length, 1);
    assert.deepEqual((await apply(changed)).changes, []);
    await refused(
      ['apply', '-f', file(`${changed}    key_type: rsa2048\n`)],
      /key_type \(--key-type\) does not apply/,
    );
  });

  test("cannot serve the vault's HTTPS, and the certificate that does cannot switch to a CSR", async (t) => {
    const { data, done, refused, run, csr } = await withRequest(t);
    const started = await run('serve', '--tls-certificate=db', '--listen=127.0.0.1:0');
    assert.equal(started.code, 1);
    assert.match(started.stderr, /cannot serve HTTPS with "db": the client holds its private key/);
    await done('certificate', 'create', '--name=own', '--domain=db.example.test');
    const server = await serve(t, data, { args: ['--tls-certificate=own'] });
    await refused(
      ['certificate', 'update', 'own', '--csr', csr],
      /The vault serves HTTPS with certificate "own" and needs its private key/,
    );
    assert.equal((await server.end()).code, 0);
    await done('certificate', 'update', 'own', '--csr', csr);
  });
});
