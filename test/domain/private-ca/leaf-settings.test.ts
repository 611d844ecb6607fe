/**
 * Usages, URIs, email addresses and subjects of the private CA: in what it issues, at each renewal, and in the document
 * of apply.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { minute } from '../../../src/base/duration.ts';
import { keyTypes } from '../../../src/base/key-type.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { certificateSettings } from '../../../src/domain/certificates/certificate-settings.ts';
import { changeCertificate } from '../../../src/domain/certificates/certificate-update.ts';
import { createCertificate, deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { undeleteCertificate } from '../../../src/domain/certificates/deleted-certificates.ts';
import { ensureCertificate } from '../../../src/domain/desired-state/certificate-state.ts';
import { createCertificateInput, parseInput, updateCertificateInput } from '../../../src/domain/inputs.ts';
import { rootPem } from '../../../src/domain/private-ca/local-ca.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireVersion } from '../../../src/domain/versions/versions.ts';
import { opensslSays, pemFile } from '../../harness/ca/private-chain.ts';
import { renewCertificate } from '../../harness/http/fixtures.ts';
import { rowOf, silentIssuer } from '../../harness/issuance/renewal-fixtures.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { testVault } from '../../harness/test-vault.ts';

const input = (settings: object) => parseInput(createCertificateInput, { name: 'one', ...settings });

const workload = {
  usage: 'client',
  uris: ['spiffe://example.org/billing'],
  emails: ['ops@example.org'],
  subject: ['CN=billing', 'O=Example', 'C=de'],
};

async function current(vault: Vault) {
  const version = await requireVersion(vault.db.reader, await rowOf(vault, 'one'), undefined);
  return { ...version, leaf: new X509Certificate(version.certificate_pem) };
}

const clientAuth = '1.3.6.1.5.5.7.3.2';
const serverAuth = '1.3.6.1.5.5.7.3.1';

function assertWorkload({ leaf }: { readonly leaf: X509Certificate }): void {
  assert.equal(leaf.subject, 'C=DE\nO=Example\nCN=billing');
  assert.equal(leaf.subjectAltName, 'URI:spiffe://example.org/billing, email:ops@example.org');
  assert.deepEqual(leaf.keyUsage, [clientAuth]);
}

test('usage, URIs, emails and subject are in the certificate and survive renewal, update, deletion and restore', async (t) => {
  const { vault } = await testVault(t);
  await createCertificate(vault, localCli, input(workload));
  const first = await current(vault);
  assertWorkload(first);
  await renewCertificate(vault, 'one');
  const second = await current(vault);
  assert.equal(second.version, 2);
  assertWorkload(second);
  const update = (changes: object) =>
    changeCertificate(vault, localCli, 'one', parseInput(updateCertificateInput, changes));
  assert.equal(await update({ reuse_key: true, usage: 'client' }), undefined, 'nothing to issue');
  assert.equal(typeof (await update({ usage: 'server', subject: null })), 'number');
  await renewCertificate(vault, 'one');
  const { leaf } = await current(vault);
  assert.deepEqual([leaf.subject, leaf.keyUsage], [undefined, [serverAuth]]);
  await deleteCertificate(vault, localCli, 'one', { force: false });
  await undeleteCertificate(vault, localCli, { name: 'one' });
  const { usage, uris, emails, subject } = await certificateSettings(vault, 'one');
  assert.deepEqual({ usage, uris, emails, subject }, { ...workload, usage: 'server', subject: [] });
});

test('a certificate with usage both has server and client auth, and its first domain as CN', async (t) => {
  const { vault } = await testVault(t);
  await createCertificate(vault, localCli, input({ domains: ['a.example', 'b.example'], usage: 'both' }));
  const { leaf } = await current(vault);
  assert.equal(leaf.subject, 'CN=a.example');
  assert.deepEqual(leaf.keyUsage, [serverAuth, clientAuth]);
  const { usage, uris, emails, subject } = await certificateSettings(vault, 'one');
  assert.deepEqual({ usage, uris, emails, subject }, { usage: 'both', uris: [], emails: [], subject: [] });
});

test('ensureCertificate creates once, does nothing when unchanged, and resets omitted settings', async (t) => {
  const { vault } = await testVault(t);
  const ensure = async (settings: object) => {
    const wanted = { ...input(settings), auto_renew: true, disabled: false };
    return (await ensureCertificate(vault, localCli, wanted)).did;
  };
  assert.equal(await ensure(workload), 'create');
  assert.equal(await ensure(workload), 'nothing');
  assert.equal(await ensure({ ...workload, usage: 'both' }), 'update');
  assert.equal(await ensure({ ...workload, usage: undefined }), 'nothing');
  assert.equal(await ensure({ domains: ['one.example'] }), 'update');
  assert.equal(await ensure({ domains: ['one.example'], usage: 'both' }), 'nothing');
  await renewCertificate(vault, 'one');
  assert.equal((await current(vault)).leaf.subjectAltName, 'DNS:one.example');
});

test('contradictory settings and settings that ACME CAs do not issue are rejected', async (t) => {
  const { vault } = await testVault(t);
  await silentIssuer(vault, 'ca');
  const refusals: [settings: object, path: string][] = [
    [{}, 'domains'],
    [{ usage: 'client' }, 'domains'],
    [{ uris: ['spiffe://a/b', 'https://example.com/'] }, 'uris'],
    [{ domains: ['a.example'], issuer: 'ca', usage: 'client' }, 'usage'],
    [{ domains: ['a.example'], issuer: 'ca', emails: ['a@b.example'] }, 'emails'],
    [{ issuer: 'ca', subject: ['CN=a'] }, 'subject'],
    [{ issuer: 'ca' }, 'domains'],
    [{ ...workload, fallback_issuer: 'ca' }, 'fallback_issuer'],
  ];
  for (const [settings, path] of refusals) {
    await assert.rejects(
      createCertificate(vault, localCli, input(settings)),
      (error: { errors?: object[] }) => {
        assert.deepEqual(
          error.errors?.map((one) => (one as { path: string }).path),
          [path],
          JSON.stringify(settings),
        );
        return true;
      },
    );
  }
  for (const settings of [
    { domains: [] },
    { uris: [] },
    { uris: ['x'] },
    { emails: ['x'] },
    { subject: ['CN=a', 'cn=b'] },
    { subject: ['X=a'] },
    { usage: 'signing' },
    { domains: ['a.example'], lifetime: '4m' },
  ]) {
    assert.throws(() => input(settings), { code: 'invalid_request' }, JSON.stringify(settings));
  }
});

test(
  'certificates of every key type, usage and lifetime pass openssl verify -x509_strict',
  needs('openssl'),
  async (t) => {
    const { vault, world } = await testVault(t);
    const root = await rootPem(vault);
    const cases = [
      ...keyTypes.map((key_type) => ({ ...workload, key_type, lifetime: '5m' })),
      { domains: ['a.example', '192.0.2.1'], usage: 'server' },
      { subject: ['CN=alice'], usage: 'client' },
      { emails: ['alice@example.com'], uris: ['https://example.com/alice'] },
    ];
    for (const [index, settings] of cases.entries()) {
      const name = `n${index}`;
      await createCertificate(vault, localCli, parseInput(createCertificateInput, { name, ...settings }));
      const version = await requireVersion(vault.db.reader, await rowOf(vault, name), undefined);
      const der = (pem: string) => pemFile(new X509Certificate(pem).raw);
      const trust = ['-no-CApath', '-no-CAstore', '-CAfile', der(root), '-untrusted', der(version.chain_pem)];
      const purpose = 'usage' in settings && settings.usage === 'server' ? 'sslserver' : 'sslclient';
      const at = ['-attime', String(world.now() / 1000), '-purpose', purpose];
      assert.match(
        opensslSays('verify', '-x509_strict', ...at, ...trust, der(version.certificate_pem)),
        /: OK$/,
      );
      if (!('lifetime' in settings)) continue;
      assert.equal(version.not_after - version.not_before, 5 * minute);
      // RFC 5280 §4.2.1.12: clients encipher no keys, not even with RSA.
      const keyUsage = opensslSays('x509', '-in', der(version.certificate_pem), '-noout', '-ext', 'keyUsage');
      assert.match(keyUsage, /Key Usage: critical\n +Digital Signature$/);
    }
  },
);
