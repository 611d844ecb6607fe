/**
 * The temporary certificate of a vault whose built-in CA is confined, or under the root of a company: the vault stays
 * reachable, within what the CA permits.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { temporaryCertificate } from '../../../src/domain/certificates/own-certificate.ts';
import { certName } from '../../../src/domain/input-strings.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { changePrivateCa } from '../../../src/domain/issuers/private-issuers.ts';
import { requestAuthority } from '../../../src/domain/private-ca/ca-requests.ts';
import { importAuthority } from '../../../src/domain/private-ca/company-root.ts';
import { localCa } from '../../../src/domain/private-ca/local-ca.ts';
import { companySigns, confinedCompany, defaultExtensions } from '../../harness/ca/company-ca.ts';
import { identifier } from '../../harness/ca/private-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

test('a temporary certificate has the names that the built-in CA permits, or else none', async (t) => {
  const { vault } = await testVault(t);
  const name = parseInput(certName, 'https');
  const domains = ['vault.internal', 'vault.example.com'].map(identifier);
  const confine = (...permit_domains: string[]) =>
    changePrivateCa(vault, localCli, 'local-ca', { permit_domains }, { force: false });
  const issued = async () =>
    new X509Certificate((await temporaryCertificate(vault, name, domains)).fullchain);
  assert.equal((await issued()).subjectAltName, 'DNS:vault.internal, DNS:vault.example.com');
  await confine('internal');
  assert.equal((await issued()).subjectAltName, 'DNS:vault.internal');
  await confine('example.org');
  const { subjectAltName, subject } = await issued();
  assert.deepEqual([subjectAltName, subject], [undefined, 'CN=Temporary certificate']);
});

test(
  'a temporary certificate under a corporate root has only the names that its CA permits',
  needs('openssl'),
  async (t) => {
    const { vault } = await testVault(t, { world: new TestWorld(Date.now() + 60_000) });
    const ca = await localCa(vault.db.reader);
    const dir = tempDir(t);
    const { root, issuing } = confinedCompany(dir);
    const { csr } = await requestAuthority(vault, localCli, ca, { replace: false });
    const extensions = [...defaultExtensions, 'extendedKeyUsage=serverAuth'];
    const chain = companySigns(dir, issuing, csr, { extensions }) + issuing.pem + root.pem;
    await importAuthority(vault, localCli, ca, Buffer.from(chain), { force: false });
    const issued = async (...domains: string[]) => {
      const name = parseInput(certName, 'https');
      const { fullchain } = await temporaryCertificate(vault, name, domains.map(identifier));
      return new X509Certificate(fullchain);
    };
    assert.equal((await issued('vault.corp.example', 'localhost')).subjectAltName, 'DNS:vault.corp.example');
    const { subjectAltName, subject } = await issued('localhost', '127.0.0.1');
    assert.deepEqual([subjectAltName, subject], [undefined, 'CN=Temporary certificate']);
  },
);
