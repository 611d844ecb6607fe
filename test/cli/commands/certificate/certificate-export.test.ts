/**
 * `vault certificate export`: the files of a version for programs on the vault's own machine, recorded like downloads.
 */
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Secret } from '../../../../src/base/secret.ts';
import { readPkcs12 } from '../../../../src/crypto/bundles/pkcs12.ts';
import { type CommandLine, commandLine } from '../../../harness/processes/command-line.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

const files = ['certificate.crt', 'chain.crt', 'fullchain.crt', 'private.key'];

type Event = {
  actor: string;
  action: string;
  resource: string;
  detail: { artifact: string; version: number };
};

/** A vault with the certificate `web`, and a directory to export to that does not exist yet. */
async function webVault(t: TestContext): Promise<CommandLine & { readonly out: string }> {
  const line = commandLine(t);
  await line.done('certificate', 'create', 'web', '--domain=www.example.test');
  return { ...line, out: join(tempDir(t), 'new', 'tls') };
}

/** Name and content of the files in a directory; each must be private. */
function contents(out: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(out)
      .sort()
      .map((name) => {
        assert.equal(statSync(join(out, name)).mode & 0o777, 0o600, name);
        return [name, readFileSync(join(out, name), 'utf8')];
      }),
  );
}

async function downloads({ json }: CommandLine): Promise<[string, string, number][]> {
  const events = await json<Event[]>('audit', 'list', '--action=certificate.download');
  return events
    .map(
      ({ actor, resource, detail }) =>
        [`${actor} ${resource}`, detail.artifact, detail.version] as [string, string, number],
    )
    .reverse();
}

test('export writes every artifact and its key with mode 0600 and records each download', async (t) => {
  const line = await webVault(t);
  const { stdout } = await line.done('certificate', 'export', 'web', '--out', line.out);
  assert.equal(stdout, `web: version 1, wrote ${files.join(', ')} to ${line.out}\n`);
  const written = contents(line.out);
  assert.deepEqual(Object.keys(written), files);
  assert.equal(written['fullchain.crt'], `${written['certificate.crt'] ?? ''}${written['chain.crt'] ?? ''}`);
  const key = createPrivateKey(written['private.key'] ?? '');
  assert(new X509Certificate(written['certificate.crt'] ?? '').checkPrivateKey(key));
  assert.equal(statSync(line.out).mode & 0o777, 0o700);
  assert.deepEqual(
    await downloads(line),
    files.map((file) => ['local-cli certificate:web', file, 1]),
  );
});

test('--file selects files by either of their names', async (t) => {
  const line = await webVault(t);
  await line.done(
    'certificate',
    'export',
    'web',
    '--out',
    line.out,
    '--file=fullchain.pem',
    '--file=certificate.crt',
  );
  assert.deepEqual(Object.keys(contents(line.out)), ['certificate.crt', 'fullchain.pem']);
  assert.deepEqual(
    (await downloads(line)).map(([, file]) => file),
    ['fullchain.pem', 'certificate.crt'],
  );
});

test('--out - prints one file and nothing else, and requires --file', async (t) => {
  const line = await webVault(t);
  await line.done('certificate', 'export', 'web', '--out', line.out);
  const { stdout, stderr } = await line.done('certificate', 'export', 'web', '--out=-', '--file=private.key');
  assert.deepEqual([stdout, stderr], [contents(line.out)['private.key'], '']);
  const refused = await line.run('certificate', 'export', 'web', '--out=-');
  assert.deepEqual([refused.code, refused.stdout], [2, '']);
  assert.match(refused.stderr, /--out - needs one --file/);
});

test('export reports files that are up to date and replaces different ones only with --force', async (t) => {
  const line = await webVault(t);
  const exporting = ['certificate', 'export', 'web', '--out', line.out];
  await line.done(...exporting);
  const before = contents(line.out);
  const inodes = () => files.map((name) => statSync(join(line.out, name)).ino);
  const untouched = inodes();
  assert.equal((await line.done(...exporting)).stdout, `web: version 1, ${line.out} is up to date\n`);
  assert.deepEqual(inodes(), untouched);

  await line.done('certificate', 'renew', 'web', '--wait');
  await line.refused(
    exporting,
    [
      `vault: ${line.out} holds other content: ${files.filter((name) => name !== 'chain.crt').join(', ')}`,
      '  Use --force to replace these files, or another directory. Nothing was written.\n',
    ].join('\n'),
  );
  assert.deepEqual(contents(line.out), before);
  const { stdout } = await line.done(...exporting, '--force');
  assert.equal(stdout, `web: version 2, wrote certificate.crt, fullchain.crt, private.key to ${line.out}\n`);
  const after = contents(line.out);
  assert.deepEqual(Object.keys(after), files);
  assert.notEqual(after['private.key'], before['private.key']);
});

test('export restores mode 0600 and, with --force, replaces a symbolic link without following it', async (t) => {
  const line = await webVault(t);
  const exporting = ['certificate', 'export', 'web', '--out', line.out];
  await line.done(...exporting);
  chmodSync(join(line.out, 'private.key'), 0o644);
  await line.done(...exporting);
  const written = contents(line.out);

  const other = join(tempDir(t), 'linked');
  mkdirSync(other);
  const target = line.file('precious');
  symlinkSync(target, join(other, 'private.key'));
  await line.refused(['certificate', 'export', 'web', '--out', other], /holds other content: private\.key/);
  assert.deepEqual(readdirSync(other), ['private.key']);
  await line.done('certificate', 'export', 'web', '--out', other, '--force');
  assert.equal(readFileSync(target, 'utf8'), 'precious');
  assert.deepEqual(contents(other), written);
});

test('unknown certificates and files and an invalid --out are rejected before anything is written or recorded', async (t) => {
  const line = await webVault(t);
  const { out } = line;
  await line.refused(['certificate', 'export', 'wep', '--out', out], /Unknown certificate "wep"(?:.|\n)*web/);
  await line.refused(
    ['certificate', 'export', 'web', '--out', out, '--file=key.pem'],
    /--file: unknown file "key\.pem"\n {2}Use one of certificate\.crt, chain\.crt, /,
    2,
  );
  await line.refused(['certificate', 'export', 'web'], /--out is missing/, 2);
  const file = line.file('a file');
  await line.refused(
    ['certificate', 'export', 'web', '--out', file],
    `vault: ${file} is not a directory\n  Choose another name with --out. Nothing was written.\n`,
  );
  assert.equal(existsSync(out), false);
  assert.deepEqual(await downloads(line), []);
});

test('a directory in place of a file is reported, and no draft is left behind', async (t) => {
  const line = await webVault(t);
  mkdirSync(join(line.out, 'private.key'), { recursive: true });
  writeFileSync(join(line.out, 'keep'), '');
  await line.refused(
    ['certificate', 'export', 'web', '--out', line.out, '--force'],
    /private\.key is a directory\n/,
  );
  assert.deepEqual(readdirSync(line.out), ['keep', 'private.key']);
});

test('keystore.p12 uses the password from a file; every format has mode 0600 and is recorded', async (t) => {
  const line = await webVault(t);
  const password = line.file('correct horse\r\n');
  const chosen = ['combined.pem', 'certificate.der', 'keystore.p12', 'archive.tar'];
  const exporting = [
    ...['certificate', 'export', 'web', '--out', line.out, `--keystore-password-file=${password}`],
    ...chosen.map((file) => `--file=${file}`),
  ];
  await line.done(...exporting);
  const opened = () => {
    const bytes = readFileSync(join(line.out, 'keystore.p12'));
    const { certificates, privateKey } = readPkcs12(bytes, new Secret('correct horse'), 'keystore.p12');
    assert(privateKey !== undefined && certificates.length === 2);
    return certificates.map((der) => der.toString('hex'));
  };
  assert.deepEqual(Object.keys(contents(line.out)), chosen.toSorted());
  const [leaf] = opened();
  assert.equal(readFileSync(join(line.out, 'certificate.der')).toString('hex'), leaf);
  assert.deepEqual(
    (await downloads(line)).map(([, file]) => file),
    chosen,
  );
  assert.match((await line.done(...exporting)).stdout, /is up to date\n$/);
  await line.done(...exporting, '--keystore-encryption=legacy', '--force');
  assert.deepEqual(opened()[0], leaf);
});

test('a keystore without a usable password and a password without a keystore are rejected', async (t) => {
  const line = await webVault(t);
  const exporting = ['certificate', 'export', 'web', '--out', line.out];
  const keystore = [...exporting, '--file=keystore.p12'];
  const good = `--keystore-password-file=${line.file('changeit\n')}`;
  await line.refused(keystore, /--keystore-password-file is missing\n/, 2);
  await line.refused([...keystore, `--keystore-password-file=${line.file('\n')}`], /password is empty\.\n/);
  await line.refused([...keystore, `--keystore-password-file=${line.file('a\tb')}`], /control character\.\n/);
  await line.refused([...keystore, good, '--keystore-encryption=rc2'], /unknown encryption "rc2"\n/, 2);
  await line.refused([...exporting, good], /--keystore-password-file needs a file with a keystore\n/, 2);
  await line.refused([...exporting, '--keystore-encryption=legacy'], /--keystore-encryption needs a file/, 2);
  assert.equal(existsSync(line.out), false);
  assert.deepEqual(await downloads(line), []);
});
