/** Fixtures for tests of the renewal engine: issuers, certificates with a version of any age, and renewals. */
import assert from 'node:assert/strict';
import { generatePrivateKey } from '../../../src/crypto/key-pair.ts';
import type { RenewalStatus } from '../../../src/db/schema/schema-renewals.ts';
import { type CertificateRow, updateCertificate } from '../../../src/db/tables/certificates/certificates.ts';
import { insertAcmeIssuer, insertIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createCertificateInput, createIssuerInput, parseInput } from '../../../src/domain/inputs.ts';
import { addIssuer } from '../../../src/domain/issuers/issuer-changes.ts';
import { issueFromLocalCa } from '../../../src/domain/private-ca/local-ca.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireCertificate } from '../../../src/domain/versions/certificate-lookup.ts';
import { addVersion } from '../../../src/domain/versions/versions.ts';
import { identifier } from '../ca/private-chain.ts';

/** Never aborted. */
export const { signal: forever } = new AbortController();

/** Adds an ACME issuer that is never contacted. Returns its id. */
export async function silentIssuer(vault: Vault, name: string): Promise<number> {
  return vault.db.write(async (writer) => {
    const id = await insertIssuer(writer, { name, type: 'acme', created_at: vault.world.now() });
    await insertAcmeIssuer(writer, { issuer_id: id, directory_url: `https://${name}.test/directory` });
    return id;
  });
}

/** Adds an ACME issuer with this directory, which must respond. */
export async function acmeIssuer(vault: Vault, name: string, directoryUrl: string): Promise<void> {
  const input = parseInput(createIssuerInput, { name, directory_url: directoryUrl });
  await addIssuer(vault, localCli, input, { acceptsTerms: true }, forever);
}

/** Creates a certificate. An ACME issuer queues its first renewal; the private CA issues it. */
export async function makeCertificate(vault: Vault, name: string, others: object = {}): Promise<void> {
  const input = { name, domains: [`${name}.example.test`], ...others };
  await createCertificate(vault, localCli, parseInput(createCertificateInput, input));
}

export async function rowOf({ db }: Vault, name: string): Promise<CertificateRow> {
  return requireCertificate(db.reader, name);
}

export async function change(vault: Vault, name: string, changes: Partial<CertificateRow>): Promise<void> {
  const { id } = await rowOf(vault, name);
  await vault.db.write((writer) => updateCertificate(writer, id, changes));
}

/** Stores the next version of the certificate, issued now. */
export async function giveVersion(vault: Vault, name: string, lifetime?: number): Promise<void> {
  const privateKey = await generatePrivateKey('ec256');
  const identifiers = [identifier(`${name}.example.test`)];
  const issued = await issueFromLocalCa(vault, { identifiers, privateKey, lifetime });
  const row = await rowOf(vault, name);
  await vault.db.write((writer) => addVersion(vault, writer, row, { source: 'acme', ...issued, privateKey }));
}

/** The states of all renewals, in the order in which they were queued. */
export async function statusesOf({ db }: Vault): Promise<RenewalStatus[]> {
  const rows = await db.reader.selectFrom('renewals').select('status').orderBy('id').execute();
  return rows.map(({ status }) => status);
}

/** Takes all renewals out of the queue, as if they had succeeded. */
export async function endAll({ db }: Vault): Promise<void> {
  await db.write((writer) => writer.updateTable('renewals').set({ status: 'succeeded' }).execute());
}

/** Waits until the condition holds, without moving the clock. */
export async function until(vault: Vault, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let turns = 0; !(await holds()); turns += 1) {
    assert(turns < 1_000_000, 'the condition never held');
    await vault.world.turn();
  }
}
