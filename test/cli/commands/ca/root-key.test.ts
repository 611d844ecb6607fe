/** `vault ca export-root-key` and `import-root-key`: the file is private, new and good, or nothing happened. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { openssl } from '../../../harness/ca/openssl-chain.ts';
import { type CommandLine, commandLine, commandLineWithCa } from '../../../harness/processes/command-line.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { serve, vault } from '../../../harness/processes/vault-process.ts';

type Stick = CommandLine & {
  /** A passphrase file. */
  readonly words: string;
  readonly stick: string;
  readonly at: (name: string) => string;
};

/** A vault, and a directory for the key. */
async function vaultWithStick(t: TestContext): Promise<Stick> {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=web', '--domain=a.test');
  const stick = join(dirname(line.data), 'stick');
  mkdirSync(stick);
  const words = line.file('several words in a row\n', 'words');
  return { ...line, words, stick, at: (name) => join(stick, name) };
}

/** Whether the database has the key of the root. */
function holdsRootKey({ data }: CommandLine): boolean {
  const database = new BetterSqlite3(join(data, 'vault.db'), { readonly: true });
  try {
    const query = "select length(sealed_private_key) > 0 from ca_certificates where role = 'root'";
    return database.prepare(query).pluck().get() === 1;
  } finally {
    database.close();
  }
}

test(
  'the root key is exported to a file that openssl reads and imported again; the vault issues without it',
  needs('openssl'),
  async (t) => {
    const line = await vaultWithStick(t);
    const { done, at, words, stick, data } = line;
    const { stdout, stderr } = await done(
      'ca',
      'export-root-key',
      at('root.key'),
      '--passphrase-file',
      words,
    );
    assert.equal(stdout, '');
    assert.match(
      stderr,
      /^Moved the key of the root of local-ca to .*root\.key\. Backups from before still contain it\.\nThe private CA issues without it until 20\d\d-.*Z\. /,
    );
    assert.deepEqual(readdirSync(stick), ['root.key']);
    assert.equal(statSync(at('root.key')).mode & 0o777, 0o600);
    assert.equal(holdsRootKey(line), false);
    const running = await serve(t, data);
    const root = await (await fetch(`${running.url}/client/ca.crt`)).text();
    writeFileSync(at('root.crt'), root);
    assert.deepEqual(
      openssl(stick, 'pkey', '-in', 'root.key', '-passin', `file:${words}`, '-pubout'),
      openssl(stick, 'x509', '-in', 'root.crt', '-noout', '-pubkey'),
    );
    await done('certificate', 'create', '--name=other', '--domain=b.test');
    writeFileSync(at('crls'), await (await fetch(`${running.url}/client/ca-crls.pem`)).text());
    await done('certificate', 'export', '--name', 'other', '--out', at('files'));
    const trust = [
      '-no-CApath',
      '-no-CAstore',
      '-CAfile',
      'root.crt',
      '-untrusted',
      'files/fullchain.crt',
      '-CRLfile',
      'crls',
    ];
    openssl(stick, 'verify', '-x509_strict', '-crl_check_all', ...trust, 'files/certificate.crt');
    const { findings } = JSON.parse((await line.run('doctor', '--offline', '--json')).stdout);
    const [finding] = findings.filter(({ check }: { check: string }) => check === 'private-ca');
    assert.equal(finding.status, 'ok');
    assert.match(
      finding.message,
      /^local-ca: the key of its root was exported; its intermediate issues until /,
    );
    const back = await done('ca', 'import-root-key', at('root.key'), '--passphrase-file', words);
    assert.equal(
      back.stderr,
      'Imported the key of the root of local-ca. Keep the file until you export the key again.\n',
    );
    assert.equal(holdsRootKey(line), true);
  },
);

test('backup, restore and master key rotation work while the root key is exported', async (t) => {
  const line = await vaultWithStick(t);
  const { done, at, words } = line;
  await done('ca', 'export-root-key', at('root.key'), '--passphrase-file', words);
  await done('master-key', 'rotate');
  await done('backup', at('x.backup'), '--with-master-key', '--passphrase-file', words);
  const data = join(dirname(line.data), 'restored');
  const restored = { ...line, data };
  const { code, stderr } = await vault([
    'restore',
    at('x.backup'),
    '--passphrase-file',
    words,
    '--data-dir',
    data,
  ]);
  assert.equal(code, 0, stderr);
  assert.equal(holdsRootKey(restored), false);
});

test('short, common, multi-line and empty passphrases are rejected before anything is written', async (t) => {
  const line = await vaultWithStick(t);
  for (const [passphrase, said] of [
    ['short', /passphrase refused: a passphrase has at least 12 characters/],
    ['passwordpassword', /passphrase refused: the passphrase is too common/],
    ['several words\nin two lines', /passphrase refused: a passphrase is one line/],
    ['', /is empty/],
  ] as const) {
    const file = line.file(passphrase);
    await line.refused(['ca', 'export-root-key', line.at('root.key'), '--passphrase-file', file], said);
  }
  assert.deepEqual(readdirSync(line.stick), []);
  assert(holdsRootKey(line));
});

test('export-root-key rejects an existing file, a missing directory and standard output, and keeps the key', async (t) => {
  const line = await vaultWithStick(t);
  const { refused, at, words, stick } = line;
  const order = (file: string) => ['ca', 'export-root-key', file, '--passphrase-file', words];
  writeFileSync(at('root.key'), 'precious');
  await refused(
    order(at('root.key')),
    `vault: ${at('root.key')} exists\n  Choose another name, or move the file away. Nothing was changed.\n`,
  );
  assert.equal(readFileSync(at('root.key'), 'utf8'), 'precious');
  await refused(order(at('none/root.key')), /cannot write .*none\/root\.key: .*\n +Choose a directory/);
  await refused(order('-'), /refusing to write the key to standard output/, 2);
  assert.deepEqual(readdirSync(stick), ['root.key']);
  assert(holdsRootKey(line));
});

test('export-root-key rejects unknown issuers and issuers that are not a private CA', async (t) => {
  const { refused, file } = await commandLineWithCa(t);
  const words = file('several words in a row');
  const order = ['ca', 'export-root-key', `${words}.key`, '--passphrase-file', words, '--issuer'];
  await refused([...order, 'ca'], /issuer ca is not a private CA/);
  await refused([...order, 'nonsense'], /no issuer named nonsense\n +Try: vault issuer list/);
});

test('import-root-key rejects a wrong passphrase and files without a private key', async (t) => {
  const line = await vaultWithStick(t);
  const { done, refused, at, words, file } = line;
  await done('ca', 'export-root-key', at('root.key'), '--passphrase-file', words);
  const wrong = file('other words in a row');
  const order = ['ca', 'import-root-key'];
  await refused(
    [...order, at('root.key'), '--passphrase-file', wrong],
    /wrong passphrase for the key, or the file is damaged/,
  );
  await refused([...order, words, '--passphrase-file', words], /the file has no private key in PEM/);
  await refused([...order, at('gone.key'), '--passphrase-file', words], /cannot read .*gone\.key/);
  await refused([...order, '-', '--passphrase-file', '-'], /cannot be both the key and the passphrase/, 2);
  await refused(
    ['ca', 'export-root-key', at('again.key'), '--passphrase-file', words],
    /does not hold the key of the root of local-ca/,
  );
  assert.deepEqual(readdirSync(line.stick), ['root.key']);
  assert.equal(holdsRootKey(line), false);
});
