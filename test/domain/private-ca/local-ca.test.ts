/** The private CA: made once, by whoever comes first, and its chains hold for as long as its root does. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { ensureLocalCa, issueFromLocalCa, rootPem } from '../../../src/domain/private-ca/local-ca.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { identifier } from '../../harness/ca/private-chain.ts';
import { race, sourceUrl } from '../../harness/processes/racing-processes.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { settingsFor, testVault } from '../../harness/test-vault.ts';

const privateKey = await generatePrivateKey('ec256');
const rootLifetime = 3650 * day;

/** A chain of the CA as node's own X.509 reads it, verified link by link. */
async function issue(vault: Vault, lifetime?: number) {
  const identifiers = [identifier('www.example.com'), identifier('*.example.org'), identifier('192.0.2.1')];
  const issued = await issueFromLocalCa(vault, { identifiers, privateKey, lifetime });
  assert.equal(issued.chain.length, 1);
  const leaf = new X509Certificate(issued.leaf);
  const intermediate = new X509Certificate(issued.chain[0] ?? Buffer.alloc(0));
  const root = new X509Certificate(await rootPem(vault));
  for (const [lower, upper] of [
    [leaf, intermediate],
    [intermediate, root],
    [root, root],
  ] as const) {
    assert(lower.checkIssued(upper) && lower.verify(upper.publicKey));
    assert(upper.ca && upper.validToDate >= lower.validToDate);
  }
  return { leaf, intermediate, root };
}

const authorities = async ({ db }: Vault) =>
  (await db.reader.selectFrom('ca_certificates').select('role').orderBy('id').execute()).map(
    ({ role }) => role,
  );

test('a leaf has the requested names and key, from a little before now, for 90 days', async (t) => {
  const { vault, world } = await testVault(t);
  const { leaf } = await issue(vault);
  assert.equal(leaf.subjectAltName, 'DNS:www.example.com, DNS:*.example.org, IP Address:192.0.2.1');
  assert.deepEqual(leaf.publicKey.export({ type: 'spki', format: 'der' }), publicKeyOf(privateKey));
  assert.equal(leaf.ca, false);
  assert.equal(leaf.validFromDate.getTime(), world.now() - 5 * 60_000);
  assert.equal(leaf.validToDate.getTime() - leaf.validFromDate.getTime(), 90 * day);
});

test('no two certificates have the same serial number', async (t) => {
  const { vault } = await testVault(t);
  const serials = await Promise.all(
    Array.from({ length: 20 }, async () => (await issue(vault)).leaf.serialNumber),
  );
  assert.equal(new Set(serials).size, 20);
});

test('a short lifetime is kept, and is not shortened by the backdating', async (t) => {
  const { vault, world } = await testVault(t);
  const { leaf } = await issue(vault, 3_600_000);
  assert.equal(leaf.validToDate.getTime() - leaf.validFromDate.getTime(), 3_600_000);
  assert.equal(world.now() - leaf.validFromDate.getTime(), 180_000);
});

test('ensureLocalCa keeps an existing CA', async (t) => {
  const { vault } = await testVault(t);
  const before = await rootPem(vault);
  await ensureLocalCa(vault);
  assert.equal(await rootPem(vault), before);
  assert.deepEqual(await authorities(vault), ['root', 'intermediate']);
});

test('the intermediate is reused while it outlives new certificates', async (t) => {
  const { vault, world } = await testVault(t);
  const first = await issue(vault);
  world.advance(4 * 365 * day);
  const later = await issue(vault);
  assert.equal(later.intermediate.serialNumber, first.intermediate.serialNumber);
  assert.deepEqual(await authorities(vault), ['root', 'intermediate']);
});

test('a new intermediate is issued when the old one expires too early, and is used from then on', async (t) => {
  const { vault, world } = await testVault(t);
  const first = await issue(vault);
  world.advance((5 * 365 - 89) * day);
  const second = await issue(vault);
  assert.notEqual(second.intermediate.serialNumber, first.intermediate.serialNumber);
  assert.equal(second.root.serialNumber, first.root.serialNumber);
  assert.equal(second.leaf.validToDate.getTime() - second.leaf.validFromDate.getTime(), 90 * day);
  assert.equal((await issue(vault)).intermediate.serialNumber, second.intermediate.serialNumber);
  assert.deepEqual(await authorities(vault), ['root', 'intermediate', 'intermediate']);
});

test('a lifetime beyond the expiry of the intermediate issues a longer intermediate', async (t) => {
  const { vault } = await testVault(t);
  const { leaf, intermediate } = await issue(vault, 7 * 365 * day);
  assert.equal(leaf.validToDate.getTime() - leaf.validFromDate.getTime(), 7 * 365 * day);
  assert(intermediate.validToDate >= leaf.validToDate);
});

test('no certificate outlives the root', async (t) => {
  const { vault, world } = await testVault(t);
  world.advance(365 * day);
  const { leaf, intermediate, root } = await issue(vault, rootLifetime);
  assert.equal(leaf.validTo, root.validTo);
  assert.equal(intermediate.validTo, root.validTo);
  await issue(vault, rootLifetime);
  assert.deepEqual(await authorities(vault), ['root', 'intermediate', 'intermediate']);
  world.advance(rootLifetime - 366 * day);
  assert.equal((await issue(vault)).leaf.validTo, root.validTo);
});

test('issuing from an expired CA fails with an error', async (t) => {
  const { vault, world } = await testVault(t);
  world.advance(rootLifetime);
  await assert.rejects(issue(vault), /the private CA has expired/);
});

const opener = `
  const { openVault } = await import(process.argv[1]);
  const { realWorld } = await import(process.argv[2]);
  await start();
  const { close } = await openVault(JSON.parse(process.argv[3]), realWorld, 'create');
  await close();
  process.stdout.write('done');
`;

test('three processes that open a new vault at the same time create one CA', async (t) => {
  const dataDir = tempDir(t);
  const args = [
    sourceUrl('cli/runtime/open-vault.ts'),
    sourceUrl('base/world.ts'),
    JSON.stringify(settingsFor(dataDir)),
  ];
  const said = await race(t, 3, opener, [...args]);
  assert.deepEqual(said, Array(3).fill('done'));
  const { vault } = await testVault(t, { dataDir });
  assert.deepEqual(await authorities(vault), ['root', 'intermediate']);
  const made = vault.db.reader
    .selectFrom('audit_events')
    .select('resource')
    .where('action', '=', 'issuer.create');
  assert.deepEqual(await made.execute(), [{ resource: 'issuer:local-ca' }]);
});
