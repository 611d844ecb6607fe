/**
 * Jobs with combined.pem, certificate.der and keystore.p12: contents, modes, checks, and the password that stays
 * private.
 */
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { Secret } from '../../src/base/secret.ts';
import { readPkcs12 } from '../../src/crypto/bundles/pkcs12.ts';
import { type Machine, machine, modeOf, shells, tools } from '../harness/client/installer.ts';
import { type ClientVault, clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import type { Place } from './places.ts';

const password = ' pä"ss\\w\'or%41d $HOME `id` 🔑';

/** Installs a job with these files; the password file has this content. */
async function installed(vault: ClientVault, client: Machine, files: readonly string[], content: string) {
  const passwordFile = join(client.home, 'password');
  writeFileSync(passwordFile, content);
  return client.run(
    [
      ...['--server', vault.url, ...vault.trust, '--certificate', 'web', '--destination', client.destination],
      ...files.flatMap((file) => ['--file', file]),
      ...(content === '' ? [] : ['--keystore-password-file', passwordFile]),
    ],
    { environment: { SERVICE_API_KEY: vault.key } },
  );
}

function bytes(client: Machine, name: string): Buffer {
  return readFileSync(join(client.destination, name));
}

/** Fails unless the keystore opens; returns its leaf. */
function opened(client: Machine, secret: string): X509Certificate {
  const read = readPkcs12(bytes(client, 'keystore.p12'), new Secret(secret), 'keystore.p12');
  assert(read.privateKey && read.certificates[0] && read.certificates.length === 2);
  const leaf = new X509Certificate(read.certificates[0]);
  const key = createPrivateKey({ key: read.privateKey.expose(), format: 'der', type: 'pkcs8' });
  assert(leaf.checkPrivateKey(key));
  return leaf;
}

/** Every shell, and every kind of download tool. */
const places: readonly Place[] = [
  { shell: 'dash', tool: 'wget' },
  { shell: 'bash', tool: 'curl' },
  { shell: 'busybox', tool: 'nc' },
  { shell: 'ksh', tool: 'openssl' },
  { shell: 'mksh', tool: 'curl' },
];

suite('a job keeps all formats of one version up to date', { concurrency: 2 }, () => {
  for (const place of places) {
    const wanted = { ...needs(shells[place.shell][0]), ...needs(tools[place.tool]) };
    test(`in ${place.shell} with ${place.tool}`, wanted, (t) => lifeOfFormats(t, place));
  }
});

async function lifeOfFormats(t: TestContext, place: Place): Promise<void> {
  const vault = await clientVault(t, place);
  const client = machine(t, place);
  const files = ['combined.pem=haproxy.pem', 'certificate.der', 'keystore.p12', 'certificate.crt'];
  const { code, stderr } = await installed(vault, client, files, `${password}\r\nignored\n`);
  assert.equal(code, 0, stderr);
  const isWhole = () => {
    const leaf = new X509Certificate(client.file('certificate.crt'));
    assert(bytes(client, 'certificate.der').equals(leaf.raw));
    assert(opened(client, password).raw.equals(leaf.raw));
    const combined = client.file('haproxy.pem');
    assert.match(combined, /^-----BEGIN PRIVATE KEY-----\n/);
    assert(leaf.checkPrivateKey(createPrivateKey(combined)));
    assert(new X509Certificate(combined.slice(combined.indexOf('-----BEGIN CERT'))).raw.equals(leaf.raw));
    return leaf.serialNumber;
  };
  const first = isWhole();
  const modes = ['haproxy.pem', 'certificate.der', 'keystore.p12', 'certificate.crt'].map((name) =>
    modeOf(join(client.destination, name)),
  );
  assert.deepEqual(modes, [0o600, 0o644, 0o600, 0o644]);
  const [job = ''] = client.jobs();
  assert.equal(modeOf(join(client.home, 'vault', 'jobs', job, 'keystore-password')), 0o600);
  const downloads = vault.downloads().length;
  assert.equal((await client.run(['--run', job], { script: client.copy() })).code, 0);
  assert.equal(vault.downloads().length, downloads, 'unchanged files are not downloaded');
  await vault.renew();
  assert.equal((await client.run(['--run', job], { script: client.copy() })).code, 0);
  assert.notEqual(isWhole(), first);
  assert.equal((await client.run(['--status'])).code, 0);
}

test('the keystore password is in no argument and in no file except the given one and the one of the job', async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  const secret = 'correct-horse-battery';
  for (const program of ['curl', 'cat', 'awk', 'sed', 'tr', 'od', 'openssl', 'mv', 'printf']) {
    client.fake(
      program,
      `echo "$0 $*" >>"${client.home}/arguments"; PATH=${process.env.PATH} exec ${program} "$@"`,
    );
  }
  const { code, stderr } = await installed(vault, client, ['keystore.p12'], `${secret}\n`);
  assert.equal(code, 0, stderr);
  const encoded = Buffer.from(secret).toString('hex').slice(4, 20).replace(/../g, '%$&');
  const [job = ''] = client.jobs();
  const holders = readdirSync(client.home, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => [secret, encoded].some((text) => readFileSync(path, 'utf8').includes(text)));
  const own = join(client.home, 'vault', 'jobs', job, 'keystore-password');
  assert.deepEqual(holders.toSorted(), [join(client.home, 'password'), own].toSorted());
  assert(readFileSync(join(client.home, 'arguments'), 'utf8').includes(`-passin file:${own}`));
});

test('installing again with another password replaces the keystore', needs('openssl'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  assert.equal((await installed(vault, client, ['keystore.p12'], 'first\n')).code, 0);
  const { code, stderr } = await installed(vault, client, ['keystore.p12'], 'second');
  assert.equal(code, 0, stderr);
  assert.equal(opened(client, 'second').ca, false);
});

test('a missing, unneeded or invalid keystore password is rejected', async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  const refused = [
    [['keystore.p12'], '', 2, /--file keystore\.p12 needs --keystore-password-file/],
    [['combined.pem'], 'changeit', 2, /--keystore-password-file needs --file keystore\.p12/],
    [['keystore.p12'], '\nchangeit\n', 1, /the first line of .* is empty/],
    [['keystore.p12'], 'a\tb\n', 1, /contains a control character/],
    [['keystore.p12'], '\xff'.repeat(129), 10, /unexpected status 400: The keystore password is too long/],
    [['archive.tar'], '', 2, /unknown artifact "archive\.tar"/],
  ] as const;
  for (const [files, content, exit, message] of refused) {
    const { code, stderr } = await installed(vault, client, files, content);
    assert.equal(code, exit, stderr);
    assert.match(stderr, message);
    assert.deepEqual(client.jobs(), []);
  }
});

test('a damaged or wrong download is rejected, and the installed files stay', needs('openssl'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  const server = await vault.relay();
  const files = ['combined.pem', 'certificate.der', 'keystore.p12'] as const;
  const { code, stderr } = await installed({ ...vault, url: server.url }, client, files, 'changeit\n');
  assert.equal(code, 0, stderr);
  const before = files.map((file) => bytes(client, file));
  await vault.renew();
  const pem = client.file('combined.pem');
  const damage: readonly (readonly [(typeof files)[number], Buffer, RegExp])[] = [
    ['combined.pem', Buffer.from(pem.slice(pem.indexOf('-----BEGIN CERT'))), /invalid PEM file/],
    ['combined.pem', Buffer.from(pem.slice(0, pem.indexOf('-----BEGIN CERT'))), /invalid PEM file/],
    ['certificate.der', (before[1] as Buffer).subarray(0, -1), /invalid DER file/],
    ['certificate.der', Buffer.from(pem), /invalid DER file/],
    ['keystore.p12', Buffer.concat([before[2] as Buffer, Buffer.alloc(1)]), /invalid DER file/],
    ['keystore.p12', before[1] as Buffer, /openssl cannot open keystore\.p12/],
    ['keystore.p12', before[2] as Buffer, /older|does not match/],
  ];
  for (const [file, body, message] of damage) {
    server.answer = (path) =>
      path.includes(`/${file}`)
        ? { status: 200, headers: { ETag: '"x"', 'Certificate-Version': '2' }, body }
        : undefined;
    const run = await client.run(['--run']);
    assert.equal(run.code, 11, `${file}: ${run.stderr}`);
    assert.match(run.stderr, message);
    for (const [index, name] of files.entries()) assert(bytes(client, name).equals(before[index] as Buffer));
  }
});
