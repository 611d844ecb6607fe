/** Puts certificates of the private CA onto the CRL of the CA certificate that issued them. */
import { X509Certificate } from 'node:crypto';
import type { Writer } from '../../db/database.ts';
import type { CertificateVersionRow } from '../../db/tables/certificates/certificate-versions.ts';
import { findSameCaCertificate } from '../../db/tables/issuance/ca-certificates.ts';
import { countRevocation } from '../../db/tables/issuance/crls.ts';
import { insertRevokedCertificate } from '../../db/tables/issuance/revoked-certificates.ts';
import type { DatabaseContext } from '../contexts.ts';

/** The id of the private CA's certificate that issued a version; undefined if another CA issued it. */
export async function privateIssuer(
  { db }: DatabaseContext,
  { certificate_pem, chain_pem }: Pick<CertificateVersionRow, 'certificate_pem' | 'chain_pem'>,
): Promise<number | undefined> {
  if (chain_pem === '') return undefined;
  // The first of the chain.
  const issuer = new X509Certificate(chain_pem);
  if (!new X509Certificate(certificate_pem).verify(issuer.publicKey)) return undefined;
  return (await findSameCaCertificate(db.reader, issuer.raw))?.id;
}

/**
 * Adds a version to the next CRL of the CA certificate that issued it, in the caller's transaction. `reason` is one of
 * RFC 5280 §5.3.1.
 */
export async function putOnCrl(
  writer: Writer,
  caCertificateId: number,
  { serial, not_after }: Pick<CertificateVersionRow, 'serial' | 'not_after'>,
  { reason, at }: { readonly reason: number; readonly at: number },
): Promise<void> {
  await insertRevokedCertificate(writer, {
    ca_certificate_id: caCertificateId,
    serial,
    reason,
    revoked_at: at,
    not_after,
  });
  await countRevocation(writer, caCertificateId);
}
