/** Imports: the first makes the certificate, each further one a version, and a refusal stores nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem, type ProblemCode } from '../../../src/base/problem.ts';
import type { BundleSource } from '../../../src/crypto/bundles/certificate-bundle.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { importCertificate } from '../../../src/domain/certificates/certificate-import.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { certName } from '../../../src/domain/input-strings.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireCertificate } from '../../../src/domain/versions/certificate-lookup.ts';
import { openVersionKey, requireVersion } from '../../../src/domain/versions/versions.ts';
import { identifier, makeChain, makeLeaf, type PrivateChain } from '../../harness/ca/private-chain.ts';
import { testVault } from '../../harness/test-vault.ts';

const chain = await makeChain();
const second = {
  ...chain,
  leaf: await makeLeaf(chain.intermediate, { identifiers: [identifier('b.example')] }),
};
const name = parseInput(certName, 'imported');

/** The files as people have them: leaf, intermediate and root in one, the key in another. */
function sources({ leaf, intermediate, root }: PrivateChain, key = leaf.privateKey) {
  const certificates = [leaf, intermediate, root].map((one) => encodePem('CERTIFICATE', one.certificate));
  return [
    { name: 'fullchain.pem', bytes: Buffer.from(certificates.join('')) },
    { name: 'privkey.pem', bytes: Buffer.from(encodePem('PRIVATE KEY', key.expose())) },
  ];
}

/** The two chains have other domains. */
const importing = (
  vault: Vault,
  files: readonly BundleSource[] = sources(chain),
  { allowLostDomains = true } = {},
) => importCertificate(vault, localCli, { name, sources: files, allowLostDomains });

async function stored({ db }: Vault) {
  return {
    certificates: await db.reader.selectFrom('certificates').selectAll().execute(),
    versions: await db.reader.selectFrom('certificate_versions').selectAll().execute(),
    events: await db.reader
      .selectFrom('audit_events')
      .selectAll()
      .where('action', '=', 'certificate.import')
      .execute(),
  };
}

const rejects = (work: Promise<unknown>, code: ProblemCode) =>
  assert.rejects(work, (error) => error instanceof Problem && error.code === code);

test('the first import creates a certificate without an issuer that is never renewed', async (t) => {
  const { vault } = await testVault(t);
  assert.equal((await importing(vault)).version, 1);
  const { certificates, versions, events } = await stored(vault);
  const [certificate, version] = [certificates[0], versions[0]];
  assert(certificate && version);
  assert.equal(certificate.issuer_id, null);
  assert.equal(certificate.auto_renew, 0);
  assert.equal(certificate.next_renewal_at, null);
  assert.equal(certificate.current_version, 1);
  assert.equal(version.source, 'import');
  assert.equal(version.certificate_pem, encodePem('CERTIFICATE', chain.leaf.certificate));
  assert.equal(version.chain_pem, encodePem('CERTIFICATE', chain.intermediate.certificate));
  const key = openVersionKey(vault, version).expose().toString();
  assert.equal(key, encodePem('PRIVATE KEY', chain.leaf.privateKey.expose()));
  assert.equal(events.length, 1);
  assert.equal(JSON.parse(events[0]?.detail ?? '').new, true);
});

test('a version without domains of the current one needs a confirmation, and an identical one does not', async (t) => {
  const { vault } = await testVault(t);
  const strict = { allowLostDomains: false };
  assert.equal((await importing(vault, sources(chain), strict)).version, 1);
  await assert.rejects(importing(vault, sources(second), strict), {
    code: 'domains_lost',
    message:
      'The new version of imported would no longer cover www.example.com, *.example.org, 127.0.0.1, 2001:db8::1.',
  });
  assert.deepEqual((await stored(vault)).versions.length, 1);
  assert.equal((await importing(vault, sources(chain), strict)).changed, false);
  assert.equal((await importing(vault, sources(second))).version, 2);
});

test('a second import becomes the current version 2 and updates the domains of the certificate', async (t) => {
  const { vault } = await testVault(t);
  await importing(vault);
  assert.equal((await importing(vault, sources(second))).version, 2);
  const certificate = await requireCertificate(vault.db.reader, name);
  assert.equal(certificate.current_version, 2);
  assert.deepEqual(JSON.parse(certificate.domains), ['b.example']);
  const { events } = await stored(vault);
  assert.deepEqual(
    events.map(({ detail }) => [JSON.parse(detail).version, JSON.parse(detail).new]),
    [
      [1, true],
      [2, false],
    ],
  );
  const past = await requireVersion(vault.db.reader, certificate, 1);
  assert.equal(past.certificate_pem, encodePem('CERTIFICATE', chain.leaf.certificate));
});

test('a forced import of the same files creates a new version with the same entity tags', async (t) => {
  const { vault } = await testVault(t);
  await importing(vault);
  await importCertificate(vault, localCli, { name, sources: sources(chain), force: true });
  const [one, two] = (await stored(vault)).versions;
  assert(one && two);
  assert.equal(one.fullchain_etag, two.fullchain_etag);
  assert.equal(one.private_key_etag, two.private_key_etag);
  assert.notDeepEqual(one.sealed_private_key, two.sealed_private_key);
});

test('an import with the name of an issued certificate is rejected and leaves it unchanged', async (t) => {
  const { vault } = await testVault(t);
  const input = parseInput(createCertificateInput, { name, domains: ['a.example'] });
  await createCertificate(vault, localCli, input);
  const before = await stored(vault);
  await rejects(importing(vault), 'certificate_exists');
  assert.deepEqual(await stored(vault), before);
});

const [fullchain, key] = sources(chain);
const [, otherKey] = sources(second);
assert(fullchain && key && otherKey);

const refusals: Record<string, BundleSource[]> = {
  'a key that belongs to another certificate': [fullchain, otherKey],
  'a certificate without a key': [fullchain],
  'a key without a certificate': [key],
  'an empty file': [{ name: 'empty.pem', bytes: Buffer.alloc(0) }],
  'a file without PEM data': [{ name: 'text.pem', bytes: Buffer.from('hello') }],
};

for (const [what, files] of Object.entries(refusals)) {
  test(`${what} is rejected, and nothing is stored`, async (t) => {
    const { vault } = await testVault(t);
    await rejects(importing(vault, files), 'invalid_request');
    assert.deepEqual(await stored(vault), { certificates: [], versions: [], events: [] });
  });
}

test('a rejected second import leaves the first one unchanged', async (t) => {
  const { vault } = await testVault(t);
  await importing(vault);
  const before = await stored(vault);
  await rejects(importing(vault, [fullchain, otherKey]), 'invalid_request');
  assert.deepEqual(await stored(vault), before);
});
