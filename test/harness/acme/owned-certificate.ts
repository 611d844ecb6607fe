/** Certificates of ACME clients from the private CA, stored as an order stores them. */
import assert from 'node:assert/strict';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { certificateRequest } from '../../../src/crypto/x509/certificate-request.ts';
import { findIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { storeIssued } from '../../../src/domain/acme-server/certificates/owned-certificates.ts';
import { issueFromPrivateCa } from '../../../src/domain/private-ca/leaf-issuance.ts';
import { localCaName } from '../../../src/domain/private-ca/local-ca.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { identifier } from '../ca/private-chain.ts';
import { insertAcmeClient } from './client-rows.ts';

export type OwnedOptions = {
  /** The name of the client, which is added if there is none. */
  readonly client?: string;
  /** Milliseconds. */
  readonly lifetime?: number;
};

/** Issues a certificate for these names to an ACME client. Returns it with its CSR (DER). */
export async function issueOwned(
  vault: Vault,
  names: readonly string[],
  { client: name = 'web', lifetime }: OwnedOptions = {},
) {
  const known = await vault.db.reader
    .selectFrom('acme_clients')
    .select('id')
    .where('name', '=', name)
    .executeTakeFirst();
  const client = { id: known?.id ?? (await insertAcmeClient(vault, name)), name };
  const issuer = await findIssuer(vault.db.reader, localCaName);
  assert(issuer);
  const identifiers = names.map(identifier);
  const key = await generatePrivateKey('ec256');
  const csr = await certificateRequest(identifiers, key);
  const issued = await issueFromPrivateCa(vault, issuer, {
    identifiers,
    publicKey: publicKeyOf(key),
    lifetime,
  });
  const actor = { name: `acme-client:${client.id}:${name}` };
  const material = { source: 'local-ca' as const, ...issued, privateKey: undefined };
  const order = { client, issuer, identifiers, csr, profile: undefined, actor, material };
  const stored = await vault.db.write((writer) => storeIssued(vault, writer, order));
  return { ...stored, client, issuer, csr, leaf: issued.leaf };
}
