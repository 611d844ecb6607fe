/** Certificates of the private CA, for tests about the files of a vault. */
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';

/** Creates a certificate of each name. */
export async function addCertificates(vault: Vault, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const input = parseInput(createCertificateInput, { name, domains: ['a.test'] });
    await createCertificate(vault, localCli, input);
  }
}
