/**
 * The key of a root outside the vault: what goes on without it, what needs it, and that it leaves only when its file is
 * good.
 */
import assert from 'node:assert/strict';
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { day, minute } from '../../../src/base/duration.ts';
import { Secret } from '../../../src/base/secret.ts';
import { generatePrivateKey } from '../../../src/crypto/key-pair.ts';
import { putPrivateCa } from '../../../src/db/tables/issuance/private-cas.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { authorityFindings } from '../../../src/domain/doctor/authority-findings.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import { resealAll } from '../../../src/domain/master-key/resealing.ts';
import { defaultSettings, settingsRow } from '../../../src/domain/private-ca/ca-settings.ts';
import { Crls } from '../../../src/domain/private-ca/crls.ts';
import { issueFromLocalCa, localCa, rootPem } from '../../../src/domain/private-ca/local-ca.ts';
import { exportRootKey, importRootKeyFile } from '../../../src/domain/private-ca/offline-root.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { openssl } from '../../harness/ca/openssl-chain.ts';
import { identifier } from '../../harness/ca/private-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';

const words = 'several words in a row';
const passphrase = new Secret(words);
const privateKey = await generatePrivateKey('ec256');
const intermediateLifetime = 5 * 365 * day;

/** Exports the key of the built-in CA, and returns the file. */
async function exported(vault: Vault): Promise<Buffer> {
  let file = '';
  const keep = (pem: string) => {
    file = pem;
    return Buffer.from(pem);
  };
  await exportRootKey(vault, { actor: localCli, issuer: 'local-ca', passphrase, keep });
  return Buffer.from(file);
}

const imported = (vault: Vault, file: Buffer, text = words) =>
  importRootKeyFile(vault, {
    actor: localCli,
    issuer: 'local-ca',
    file,
    passphrases: [new Secret(text)],
  });

async function issue(vault: Vault, lifetime?: number) {
  const identifiers = [identifier('www.example.com')];
  const { leaf, chain } = await issueFromLocalCa(vault, { identifiers, privateKey, lifetime });
  return { leaf: new X509Certificate(leaf), intermediate: new X509Certificate(chain[0] ?? '') };
}

/** How long the sealed keys are: of the root, then of the intermediates. */
async function keyLengths({ db }: Vault): Promise<number[]> {
  const rows = await db.reader
    .selectFrom('ca_certificates')
    .select('sealed_private_key')
    .orderBy('id')
    .execute();
  return rows.map(({ sealed_private_key: blob }) => blob.length);
}

const rootIdOf = async ({ db }: Vault) =>
  (
    await db.reader
      .selectFrom('ca_certificates')
      .select('id')
      .where('role', '=', 'root')
      .executeTakeFirstOrThrow()
  ).id;

async function events({ db }: Vault): Promise<string[]> {
  const rows = await db.reader
    .selectFrom('audit_events')
    .select(['actor', 'action', 'resource'])
    .where('action', 'like', 'issuer.root_key%')
    .orderBy('id')
    .execute();
  return rows.map(({ actor, action, resource }) => `${actor} ${action} ${resource}`);
}

function opensslDir(t: TestContext, files: Readonly<Record<string, string | Buffer>>): string {
  const dir = tempDir(t);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(dir, name), content);
  return dir;
}

test(
  'the exported file opens with openssl and contains the root key, which is removed from the vault',
  needs('openssl'),
  async (t) => {
    const { vault } = await testVault(t);
    const file = await exported(vault);
    const dir = opensslDir(t, { 'root.key': file, words: `${words}\n`, 'root.crt': await rootPem(vault) });
    const fromKey = openssl(dir, 'pkey', '-in', 'root.key', '-passin', 'file:words', '-pubout');
    assert.deepEqual(fromKey, openssl(dir, 'x509', '-in', 'root.crt', '-noout', '-pubkey'));
    const structure = openssl(dir, 'asn1parse', '-in', 'root.key').toString();
    assert.match(
      structure,
      /PBES2[\s\S]*PBKDF2[\s\S]*INTEGER +:1E8480[\s\S]*hmacWithSHA256[\s\S]*aes-256-cbc/,
    );
    assert.deepEqual([(await keyLengths(vault))[0], (await keyLengths(vault))[1] !== 0], [0, true]);
    assert.deepEqual(await events(vault), ['local-cli issuer.root_key_export issuer:local-ca']);
  },
);

test('two exports with the same passphrase differ but contain the same key', async (t) => {
  const { vault } = await testVault(t);
  const first = await exported(vault);
  await imported(vault, first);
  const second = await exported(vault);
  assert.notDeepEqual(second, first);
  const [one, two] = [first, second].map((key) =>
    createPrivateKey({ key, passphrase: words }).export({ type: 'pkcs8', format: 'der' }),
  );
  assert.deepEqual(one, two);
});

test('a file that reads back wrong leaves the key in the vault', async (t) => {
  const { vault } = await testVault(t);
  const before = await keyLengths(vault);
  const other = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: words,
  });
  const wrong = {
    nothing: () => Buffer.alloc(0),
    'half of it': (pem: string) => Buffer.from(pem.slice(0, pem.length / 2)),
    'another key': () => Buffer.from(other),
    'a flipped bit': (pem: string) => Buffer.from(pem.replace(/(.{8})(\n-----END)/, 'AAAAAAA=$2')),
  };
  for (const [what, keep] of Object.entries(wrong)) {
    await assert.rejects(
      exportRootKey(vault, { actor: localCli, issuer: 'local-ca', passphrase, keep }),
      /the file does not contain what was written|is damaged/,
      what,
    );
  }
  assert.deepEqual(await keyLengths(vault), before);
  assert.deepEqual(await events(vault), []);
});

test('the private CA issues without its root key until the intermediate expires, and again after the key is imported', async (t) => {
  const { vault, world } = await testVault(t);
  const { intermediate } = await issue(vault);
  const file = await exported(vault);
  assert.equal((await issue(vault)).intermediate.serialNumber, intermediate.serialNumber);
  const { leaf } = await issue(vault, 7 * 365 * day);
  assert.equal(leaf.validTo, intermediate.validTo, 'a longer lifetime is cut');
  world.advance(intermediateLifetime - 10 * minute);
  assert.equal((await issue(vault)).leaf.validTo, intermediate.validTo);
  world.advance(10 * minute);
  await assert.rejects(issue(vault), {
    message: 'private CA local-ca needs a new intermediate, and the key of its root was exported',
    hint: /Fix: vault ca import-root-key FILE --passphrase-file FILE --issuer local-ca$/,
  });
  await imported(vault, file);
  const renewed = await issue(vault);
  assert.notEqual(renewed.intermediate.serialNumber, intermediate.serialNumber);
  assert(renewed.intermediate.verify(new X509Certificate(await rootPem(vault)).publicKey));
});

test('an intermediate that expires within four years is replaced before the root key is exported', async (t) => {
  const { vault, world } = await testVault(t);
  world.advance(2 * 365 * day);
  await exported(vault);
  assert.equal((await keyLengths(vault)).length, 3);
  const { intermediate } = await issue(vault);
  assert(intermediate.validToDate.getTime() > world.now() + 4 * 365 * day);
});

test('changed constraints require the root key', async (t) => {
  const { vault } = await testVault(t);
  const file = await exported(vault);
  const { id } = await localCa(vault.db.reader);
  const confined = settingsRow(id, { ...defaultSettings, permitDomains: ['example.com'] });
  await vault.db.write((writer) => putPrivateCa(writer, confined));
  await assert.rejects(
    issue(vault),
    /needs an intermediate with other constraints, and the key of its root was exported/,
  );
  const [finding] = await authorityFindings(vault);
  assert.deepEqual([finding?.status, finding?.about], ['failed', 'local-ca']);
  await imported(vault, file);
  assert.equal((await issue(vault)).leaf.subjectAltName, 'DNS:www.example.com');
});

test(
  'the last CRL of the root is served unchanged and is valid until its intermediates expire',
  needs('openssl'),
  async (t) => {
    const { vault, world } = await testVault(t);
    const crls = new Crls(vault);
    const { leaf, intermediate } = await issue(vault, 4 * 365 * day);
    const id = await rootIdOf(vault);
    const before = await crls.of(id);
    const file = await exported(vault);
    const last = await crls.of(id);
    assert(last !== undefined && before !== undefined && last.number > before.number);
    world.advance(3 * 365 * day);
    assert.deepEqual((await new Crls(vault).of(id))?.body, last.body);
    const root = await rootPem(vault);
    const pem = intermediate.toString();
    const dir = opensslDir(t, {
      root,
      pem,
      leaf: leaf.toString(),
      crls: (await crls.all()).body,
      last: last.body,
    });
    const text = openssl(dir, 'crl', '-inform', 'DER', '-in', 'last', '-noout', '-nextupdate').toString();
    assert.equal(Date.parse(text.replace('nextUpdate=', '')), intermediate.validToDate.getTime());
    const at = ['-attime', String(Math.floor(world.now() / 1000)), '-no-CApath', '-no-CAstore'];
    const trust = ['-CAfile', 'root', '-untrusted', 'pem', '-CRLfile', 'crls'];
    const verified = openssl(dir, 'verify', ...at, '-x509_strict', '-crl_check_all', ...trust, 'leaf');
    assert.equal(verified.toString(), 'leaf: OK\n');
    await imported(vault, file);
    assert(((await crls.of(id))?.number ?? 0) > last.number, 'the key signs CRLs again');
  },
);

test('a CRL that a server signs during the export does not replace the last one', async (t) => {
  const { vault, world } = await testVault(t);
  const crls = new Crls(vault);
  const id = await rootIdOf(vault);
  await crls.of(id);
  world.advance(day);
  const write = vault.db.write.bind(vault.db);
  let interrupted = false;
  t.mock.method(vault.db, 'write', async (work: Parameters<typeof write>[0]) => {
    if (!interrupted) {
      interrupted = true;
      await crls.of(id);
    }
    return write(work);
  });
  await exported(vault);
  assert(interrupted);
  const { next_update: end } = await vault.db.reader
    .selectFrom('crls')
    .select('next_update')
    .where('ca_certificate_id', '=', id)
    .executeTakeFirstOrThrow();
  assert(end > world.now() + 3 * 365 * day);
  assert.equal((await keyLengths(vault))[0], 0);
});

test('a second export and a second import are rejected', async (t) => {
  const { vault } = await testVault(t);
  const file = await exported(vault);
  await assert.rejects(exported(vault), {
    message: 'the vault does not hold the key of the root of local-ca',
    hint: /Try: vault ca import-root-key/,
  });
  await imported(vault, file);
  await assert.rejects(imported(vault, file), /already holds the key of the root of local-ca/);
  assert.deepEqual(await events(vault), [
    'local-cli issuer.root_key_export issuer:local-ca',
    'local-cli issuer.root_key_import issuer:local-ca',
  ]);
});

test('of two concurrent exports, one succeeds and the other fails with an error', async (t) => {
  const { vault } = await testVault(t);
  const outcomes = await Promise.allSettled([exported(vault), exported(vault)]);
  const failed = outcomes.flatMap((outcome) =>
    outcome.status === 'rejected' ? [String(outcome.reason)] : [],
  );
  assert.equal(failed.length, 1);
  assert.match(failed[0] ?? '', /another command exported the key meanwhile/);
  assert.equal((await events(vault)).length, 1);
});

test('importing a wrong or damaged key file is rejected with the reason, and the vault stays without the key', async (t) => {
  const { vault } = await testVault(t);
  const file = await exported(vault);
  const { privateKey: other } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const encrypted = other.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: words });
  const plain = other.export({ type: 'pkcs8', format: 'pem' });
  await assert.rejects(
    imported(vault, file, 'other words in a row'),
    /wrong passphrase for the key, or the file is damaged/,
  );
  await assert.rejects(
    imported(vault, Buffer.from(encrypted)),
    /the key in the file is not that of the root of local-ca/,
  );
  await assert.rejects(imported(vault, Buffer.from(plain)), /the private key in the file is not encrypted/);
  await assert.rejects(
    imported(vault, Buffer.from(await rootPem(vault))),
    /the file has no private key in PEM/,
  );
  await assert.rejects(imported(vault, file.subarray(0, 200)), /damaged/i);
  assert.equal((await keyLengths(vault))[0], 0);
});

test('a master key rotation skips an exported root key', async (t) => {
  const { vault } = await testVault(t);
  await exported(vault);
  assert.deepEqual((await resealAll(vault)).damaged, []);
  assert.equal((await keyLengths(vault))[0], 0);
  await issue(vault);
});

test('doctor warns a year before an exported root key is needed, with the import command', async (t) => {
  const { vault, world } = await testVault(t);
  assert.deepEqual(await authorityFindings(vault), []);
  const file = await exported(vault);
  const statuses = [];
  for (const left of [366, 364, 29, 0]) {
    const { not_after: end } = await vault.db.reader
      .selectFrom('ca_certificates')
      .select('not_after')
      .where('role', '=', 'intermediate')
      .executeTakeFirstOrThrow();
    world.advance(end - left * day - world.now());
    const [{ status, hint } = { status: 'none', hint: '' }] = await authorityFindings(vault);
    statuses.push([status, /Fix: vault ca import-root-key .* --issuer local-ca$/.test(hint ?? '')]);
  }
  assert.deepEqual(statuses, [
    ['ok', false],
    ['warning', true],
    ['failed', true],
    ['failed', true],
  ]);
  await imported(vault, file);
  await exported(vault);
  const [{ status, message } = { status: 'none', message: '' }] = await authorityFindings(vault);
  assert.equal(status, 'ok');
  assert.match(message, /^local-ca: the key of its root was exported; its intermediate issues until /);
});

test('doctor warns of certificate lifetimes that exceed the intermediate', async (t) => {
  const { vault, world } = await testVault(t);
  const input = { name: 'web', domains: ['www.example.com'], lifetime: '900d' };
  await createCertificate(vault, localCli, parseInput(createCertificateInput, input));
  await exported(vault);
  world.advance(intermediateLifetime - 899 * day);
  const [{ status, message } = { status: 'none', message: '' }] = await authorityFindings(vault);
  assert.equal(status, 'warning');
  assert.match(
    message,
    /certificates for 900 days expire with its intermediate at .*, and the key of its root was exported/,
  );
});
