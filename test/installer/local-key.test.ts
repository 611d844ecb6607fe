/**
 * Jobs with --local-key: the private key is generated on the machine, never sent, and renewed together with its
 * certificate.
 */
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Secret } from '../../src/base/secret.ts';
import { readPkcs12 } from '../../src/crypto/bundles/pkcs12.ts';
import { assertPair, machine, modeOf } from '../harness/client/installer.ts';
import type { Relay } from '../harness/client/relay.ts';
import { clientVault, usual } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import {
  age,
  chainInVault,
  installLocal,
  keyFile,
  keyFiles,
  publicKey,
  signingKey,
  signScopes,
} from './local-keys.ts';
import { inTurnOfPlaces } from './places.ts';

const openssl = needs('openssl');
const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? needs('setpriv') : { skip: 'only root can become another user' };

/** Fails if anything that was sent has a part of the private key: as PEM, or its number in any usual encoding. */
function assertUnsent(server: Relay, pem: string): void {
  const { d = '' } = createPrivateKey(pem).export({ format: 'jwk' });
  const secret = Buffer.from(d, 'base64url');
  const forms = [
    ...pem.split('\n').filter((line) => line !== '' && !line.startsWith('-----')),
    ...(['base64url', 'base64', 'hex', 'latin1'] as const).map((form) => secret.toString(form)),
    secret.toString('hex').replace(/../g, '%$&'),
    'PRIVATE KEY',
  ];
  for (const { path, headers, body } of server.seen)
    for (const text of [path, JSON.stringify(headers), body.toString('latin1')])
      for (const form of forms) assert.equal(text.toLowerCase().includes(form.toLowerCase()), false, form);
}

inTurnOfPlaces(
  'the private key is generated on the machine, renewed with its certificate, and never sent',
  async (t, place) => {
    const vault = await clientVault(t, place);
    const client = machine(t, place);
    const server = await vault.relay();
    const installed = await installLocal(vault, client, [], { url: server.url });
    assert.equal(installed.code, 0, installed.stderr);
    assert.equal(assertPair(client).subjectAltName, 'DNS:www.example.test');
    const keys = [client.file('tls.key')];
    assert.match(keys[0] ?? '', /^-----BEGIN PRIVATE KEY-----\n[^-]+-----END PRIVATE KEY-----\n$/);
    const folder = join(keyFile(client), '..');
    const modes = [join(client.destination, 'tls.key'), keyFile(client), folder].map(modeOf);
    assert.deepEqual(modes, [0o600, 0o600, 0o700]);
    const sent = server.seen.filter(({ method }) => method === 'POST');
    assert.deepEqual(
      sent.map(({ method, path, headers }) => [method, path, headers['content-type']]),
      [['POST', '/api/v1/certificates/web/sign', 'application/x-pem-file']],
    );
    assert.match(String(sent[0]?.body), /^-----BEGIN CERTIFICATE REQUEST-----\n[^-]+-----END CERT/);

    const downloads = vault.downloads();
    const [job = ''] = client.jobs();
    const run = async () => {
      const { code, stderr } = await client.run(['--run', job], { script: client.copy() });
      assert.equal(code, 0, stderr);
      assertPair(client);
    };
    await run();
    assert.deepEqual(vault.downloads(), downloads, 'unchanged files are not downloaded');

    // The vault renews by itself with the same request.
    await vault.renew();
    const first = client.file('tls.crt');
    await run();
    assert.notEqual(client.file('tls.crt'), first);
    assert.equal(client.file('tls.key'), keys[0]);

    age(client);
    await run();
    keys.push(client.file('tls.key'));
    assert.notEqual(keys[1], keys[0]);
    assert.deepEqual(keyFiles(client), ['current.pem', 'fullchain', 'fullchain.pem']);
    const renewed = vault.downloads();
    await run();
    assert.deepEqual(vault.downloads(), renewed, 'a new key is not due again');
    assert.equal((await client.run(['--status'])).code, 0);
    for (const key of keys) assertUnsent(server, key);

    assert.equal((await client.run(['--uninstall', job])).code, 0);
    assert.equal(existsSync(join(client.home, 'vault', 'state', job)), false);
    assertPair(client);
  },
);

test(
  'the private key is in no argument, and other users cannot read any file of the job',
  openssl,
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    // The permissions of each file that a program of the run could leave behind.
    for (const program of ['curl', 'cat', 'awk', 'sed', 'openssl', 'mv', 'cp', 'sync', 'cksum', 'sleep'])
      client.fake(
        program,
        `{ echo "$0 $*"; find "${client.home}/vault" "${client.destination}" -type f -perm /077; } >>"${client.home}/arguments" 2>/dev/null
      PATH=${process.env.PATH} exec ${program} "$@"`,
      );
    const { code, stderr } = await installLocal(vault, client, ['--file', 'combined.pem', '--mode', '0600']);
    assert.equal(code, 0, stderr);
    const seen = readFileSync(join(client.home, 'arguments'), 'utf8');
    for (const line of client.file('tls.key').split('\n'))
      if (line !== '') assert.equal(seen.includes(line), false, line);
    const open = seen.split('\n').filter((line) => line.startsWith('/') && !/^\S+ /.test(line));
    assert.deepEqual(
      [...new Set(open)].filter((path) => !/install\.sh$/.test(path)),
      [],
    );
  },
);

test(
  '--local-key-type sets the type of the key, and a new type takes effect immediately',
  openssl,
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    const types = [
      ['ec384', { namedCurve: 'secp384r1' }],
      ['rsa2048', { modulusLength: 2048 }],
      ['rsa3072', { modulusLength: 3072 }],
    ] as const;
    for (const [type, details] of types) {
      const { code, stderr } = await installLocal(vault, client, ['--local-key-type', type]);
      assert.equal(code, 0, stderr);
      const { asymmetricKeyDetails } = createPrivateKey(client.file('tls.key'));
      assert.deepEqual({ ...asymmetricKeyDetails, ...details }, asymmetricKeyDetails);
      assertPair(client);
      const status = await client.run(['--status']);
      assert(status.stdout.includes(`  private key  generated on this machine (${type})\n`), status.stdout);
    }
    const again = await installLocal(vault, client, ['--local-key-type', 'rsa3072']);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stderr, /scheduled/);
    assert.doesNotMatch(again.stderr, /installed/, 'the same command keeps the key');
  },
);

test('the request has every DNS name and address of the certificate', openssl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  const domains = ['*.example.test', 'db1', '192.0.2.1', '2001:db8::1', 'xn--bcher-kva.example'];
  for (let host = 1; host <= 60; host += 1) domains.push(`host-${host}.example.test`);
  const names = domains.flatMap((domain) => ['--domain', domain]);
  await vault.command('certificate', 'create', '--name', 'names', ...names);
  const { code, stderr } = await installLocal(vault, client, ['--certificate', 'names']);
  assert.equal(code, 0, stderr);
  const certified = (assertPair(client).subjectAltName ?? '').split(', ');
  const expected = domains.map((name) =>
    name.includes(':')
      ? 'IP Address:2001:DB8:0:0:0:0:0:1'
      : /^\d/.test(name)
        ? `IP Address:${name}`
        : `DNS:${name}`,
  );
  assert.deepEqual(certified.toSorted(), expected.toSorted());
});

test(
  'combined.pem and keystore.p12 are built on the machine, and stay if nothing changed',
  openssl,
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    const password = ' pä"ss $HOME 🔑';
    const passwordFile = join(client.home, 'password');
    writeFileSync(passwordFile, `${password}\n`);
    const files = ['--file', 'combined.pem', '--file', 'keystore.p12', '--file', 'certificate.der'];
    const options = [...files, '--keystore-password-file', passwordFile];
    const bytes = (name: string) => readFileSync(join(client.destination, name));
    const check = () => {
      const leaf = assertPair(client);
      const combined = client.file('combined.pem');
      assert.equal(combined, client.file('tls.key') + client.file('tls.crt'));
      const opened = readPkcs12(bytes('keystore.p12'), new Secret(password), 'keystore.p12');
      assert(opened.privateKey);
      const key = createPrivateKey({ key: opened.privateKey.expose(), format: 'der', type: 'pkcs8' });
      assert(leaf.checkPrivateKey(key));
      assert.equal(opened.certificates.length, 2);
      assert(new X509Certificate(opened.certificates[0] ?? '').raw.equals(leaf.raw));
      assert(bytes('certificate.der').equals(leaf.raw));
      return bytes('keystore.p12');
    };
    const { code, stderr } = await installLocal(vault, client, options);
    assert.equal(code, 0, stderr);
    const first = check();
    assert.deepEqual(
      ['combined.pem', 'keystore.p12'].map((name) => modeOf(join(client.destination, name))),
      [0o600, 0o600],
    );
    assert.equal((await client.run(['--run'])).code, 0);
    assert(check().equals(first));
    rmSync(join(client.destination, 'combined.pem'));
    writeFileSync(join(client.destination, 'keystore.p12'), 'x');
    assert.equal((await client.run(['--run'])).code, 0);
    check();
    await vault.renew();
    assert.equal((await client.run(['--run'])).code, 0);
    assert(!check().equals(first));
  },
);

test('a job changes to a local key and back', openssl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  assert.equal((await vault.install(client)).code, 0);
  const vaults = client.file('tls.key');
  const changed = await installLocal(vault, client);
  assert.equal(changed.code, 0, changed.stderr);
  const [pair, keys] = [assertPair(client).serialNumber, keyFiles(client)];
  assert.notEqual(client.file('tls.key'), vaults);
  const refused = await vault.install(client);
  assert.equal(refused.code, 10, refused.stderr);
  assert.match(
    refused.stderr,
    /404: the vault does not hold the private key of certificate "web"[^\n]*\nTry: --local-key/,
  );
  assert.deepEqual([assertPair(client).serialNumber, keyFiles(client)], [pair, keys]);
  assert.equal((await client.run(['--run'])).code, 0, 'the job with the local key stays');
  await vault.command('certificate', 'update', '--name', 'web', '--csr', 'none');
  await vault.renew();
  const back = await vault.install(client);
  assert.equal(back.code, 0, back.stderr);
  assertPair(client);
  assert.deepEqual(keyFiles(client), []);
});

test('an invalid command with --local-key is rejected and changes nothing', openssl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  const read = await vault.newKey('--scope', 'certificates:read', '--certificate', '*');
  const lacking = await installLocal(vault, client, [], { environment: { SERVICE_API_KEY: read } });
  assert.equal(lacking.code, 10, lacking.stderr);
  assert.match(
    lacking.stderr,
    /lacks the scope certificates:sign.*\nFix: .*\nvault api-key create --name NAME --certificate 'web' --scope certificates:sign --scope certificates:read\n/,
  );
  const refusals = [
    [['--local-key-type', 'ed25519'], /unknown type "ed25519"; use ec256/],
    [['--local-key=yes'], /--local-key takes no value/],
  ] as const;
  for (const [args, message] of refusals) {
    const { code, stderr } = await installLocal(vault, client, args);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
  }
  const place = ['--server', vault.url, '--certificate', 'web', '--destination', client.destination];
  const without = await client.run([...place, '--file', 'fullchain.crt', '--local-key']);
  assert.match(without.stderr, /--local-key needs --file private\.key, combined\.pem or keystore\.p12/);
  const typeOnly = await client.run(['--server', vault.url, ...usual(client), '--local-key-type', 'ec256']);
  assert.match(typeOnly.stderr, /--local-key-type needs --local-key/);
  client.fake('openssl', 'exit 127');
  const bare = await installLocal(vault, client);
  assert.equal(bare.code, 1, bare.stderr);
  assert.match(bare.stderr, /--local-key needs the openssl program, which is not installed/);
  assert.equal(existsSync(client.destination), false);
  assert.deepEqual([client.jobs(), client.crontab(), vault.downloads()], [[], '', []]);
});

test(
  'a job reports a damaged key or missing openssl, and the next run replaces the key',
  openssl,
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    assert.equal((await installLocal(vault, client)).code, 0);
    const before = publicKey(client);
    writeFileSync(keyFile(client), readFileSync(keyFile(client)).subarray(0, 90));
    const status = await client.run(['--status']);
    assert.equal(status.code, 1);
    assert.match(status.stdout, /problem {6}\S+current\.pem, the private key, is missing or damaged; --run/);
    client.fake('openssl', 'exit 127');
    const bare = await client.run(['--run']);
    assert.equal(bare.code, 1, bare.stderr);
    assert.match(bare.stderr, /--local-key needs the openssl program/);
    rmSync(join(client.bin, 'openssl'));
    assert.equal((await client.run(['--run'])).code, 0);
    assertPair(client);
    assert.notEqual(publicKey(client), before);
    assert.equal((await client.run(['--status'])).code, 0);
  },
);

test('--set-key accepts only an API key that may sign this certificate', openssl, async (t) => {
  const vault = await clientVault(t, { certificates: ['web', 'mail'] });
  const client = machine(t);
  assert.equal((await installLocal(vault, client)).code, 0);
  const replace = (key: string) => client.run(['--set-key'], { environment: { SERVICE_API_KEY: key } });
  const read = await replace(await vault.newKey('--scope', 'certificates:read', '--certificate', '*'));
  assert.equal(read.code, 10, read.stderr);
  assert.match(read.stderr, /lacks the scope certificates:sign[\s\S]*no job was changed/);
  const elsewhere = await replace(await vault.newKey(...signScopes, '--certificate', 'mail'));
  assert.equal(elsewhere.code, 10, elsewhere.stderr);
  const good = await replace(await signingKey(vault));
  assert.equal(good.code, 0, good.stderr);
  const chain = await chainInVault(vault);
  age(client);
  assert.equal((await client.run(['--run'])).code, 0);
  assert.notEqual(await chainInVault(vault), chain);
});

test(
  'in a directory of another user, that user gets the files and root keeps the job key',
  asRoot,
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    chmodSync(client.home, 0o755);
    mkdirSync(client.destination);
    chownSync(client.destination, 65534, 65534);
    const { code, stderr } = await installLocal(vault, client, [
      '--owner',
      'nobody',
      '--file',
      'combined.pem',
    ]);
    assert.equal(code, 0, stderr);
    age(client);
    assert.equal((await client.run(['--run'])).code, 0);
    assertPair(client);
    const owners = ['tls.key', 'tls.crt', 'combined.pem'].map((name) => join(client.destination, name));
    assert.deepEqual(
      [...owners, keyFile(client)].map((path) => statSync(path).uid),
      [65534, 65534, 65534, 0],
    );
    assert.equal((await client.run(['--status'])).code, 0);
  },
);
