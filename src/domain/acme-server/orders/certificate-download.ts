/** Certificates as ACME clients download them (RFC 8555 §7.4.2). */
import { X509Certificate } from 'node:crypto';
import type { Reader } from '../../../db/database.ts';
import { listRoots } from '../../../db/tables/issuance/ca-certificates.ts';
import type { DatabaseContext } from '../../contexts.ts';
import type { AcmeCaller } from '../accounts/callers.ts';
import { ownedCertificate } from '../certificates/owned-certificates.ts';
import { nothingHere } from './orders.ts';

/**
 * The certificate in PEM with each chain that leads to a trusted root, the usual one first, for any account of the
 * client that ordered it at this issuer. Throws the same for others as for one that does not exist.
 */
export async function downloadedChains(
  { db }: DatabaseContext,
  { client, issuer }: AcmeCaller,
  certificateId: number | undefined,
  version: number | undefined,
): Promise<readonly [usual: string, ...alternates: string[]]> {
  if (certificateId === undefined || version === undefined) throw nothingHere();
  const found = await ownedCertificate(db.reader, client, certificateId, version);
  if (found?.certificate.issuer_id !== issuer.id) throw nothingHere();
  const { certificate_pem: leaf, chain_pem: chain } = found.version;
  const unlinked = await withoutLink(db.reader, issuer.id, chain);
  return unlinked === undefined ? [leaf + chain] : [leaf + chain, leaf + unlinked];
}

/**
 * The chain (PEM) up to the first certificate that links the root of the CA to its former one, for clients that trust
 * the new root; undefined if there is no such link.
 */
async function withoutLink(reader: Reader, issuerId: number, chain: string): Promise<string | undefined> {
  const blocks = chain.split(/(?<=-----END CERTIFICATE-----\n)/).filter((block) => block !== '');
  // Most chains are an intermediate alone.
  if (blocks.length < 2) return undefined;
  const keys = (await listRoots(reader, issuerId)).map(({ certificate }) => publicKeyOf(certificate));
  const link = blocks.findIndex((block) => keys.includes(publicKeyOf(block)));
  return link < 1 ? undefined : blocks.slice(0, link).join('');
}

function publicKeyOf(certificate: Buffer | string): string {
  const { publicKey } = new X509Certificate(certificate);
  return publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
}
