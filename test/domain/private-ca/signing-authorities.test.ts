/** CA certificates are opened once, and again when what is stored of them changed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generatePrivateKey } from '../../../src/crypto/key-pair.ts';
import { SealError } from '../../../src/crypto/secrets/sealing.ts';
import type { CaCertificateRow } from '../../../src/db/tables/issuance/ca-certificates.ts';
import { authority } from '../../../src/domain/private-ca/authorities.ts';
import { signingAuthority } from '../../../src/domain/private-ca/signing-authorities.ts';
import { authorityKeyOwner, sealFor } from '../../../src/domain/sealed-secrets.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { testVault } from '../../harness/test-vault.ts';

function rows({ db }: Vault): Promise<CaCertificateRow[]> {
  return db.reader.selectFrom('ca_certificates').selectAll().orderBy('id').execute();
}

test('signingAuthority returns the same opened CA for a row that is read again, and one per CA certificate', async (t) => {
  const { vault } = await testVault(t);
  const [first, again] = [await rows(vault), await rows(vault)];
  const opened = first.map((row) => signingAuthority(vault, row));
  assert.equal(new Set(opened).size, 2);
  for (const [at, row] of again.entries()) assert.equal(signingAuthority(vault, row), opened[at]);
});

test('signingAuthority reopens a resealed key, and rejects a foreign or altered key', async (t) => {
  const { vault } = await testVault(t);
  const [row] = await rows(vault);
  assert(row);
  const before = signingAuthority(vault, row);
  const seal = (key: Parameters<typeof sealFor>[3]) =>
    vault.db.write((writer) => sealFor(vault, writer, authorityKeyOwner(row.id), key));
  const { privateKey } = authority(vault, row);
  assert.notEqual(signingAuthority(vault, { ...row, sealed_private_key: await seal(privateKey) }), before);
  const foreign = { ...row, sealed_private_key: await seal(await generatePrivateKey('ec384')) };
  assert.throws(() => signingAuthority(vault, foreign), /not that of the issuer/);
  const altered = Buffer.from(row.sealed_private_key);
  altered.writeUInt8(altered.readUInt8(40) ^ 1, 40);
  assert.throws(() => signingAuthority(vault, { ...row, sealed_private_key: altered }), SealError);
});
