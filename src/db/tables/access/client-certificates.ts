/** API keys that are bound to client certificates, and the versions that may be presented with them. */
import type { Expression } from 'kysely';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader } from '../../database.ts';
import type { CertificateVersionRow } from '../certificates/certificate-versions.ts';

/** The keys that are bound to a certificate and not revoked. */
export async function keysBoundTo(
  reader: Reader,
  certificateId: number,
): Promise<{ readonly id: number; readonly name: string }[]> {
  return reader
    .selectFrom('api_keys')
    .select(['id', 'name'])
    .where('client_certificate_id', '=', certificateId)
    .where('revoked_at', 'is', null)
    .orderBy('id')
    .execute();
}

/** The ids of the issuers whose certificates some key is bound to that is not revoked. */
export async function listBindingIssuers(reader: Reader): Promise<number[]> {
  const rows = await reader
    .selectFrom('certificates')
    .innerJoin('issuers', 'issuers.id', 'certificates.issuer_id')
    .select('issuers.id')
    .distinct()
    .where('issuers.type', '!=', 'acme')
    .where('certificates.id', 'in', ({ selectFrom }) =>
      selectFrom('api_keys')
        .select('client_certificate_id')
        .where('client_certificate_id', 'is not', null)
        .where('revoked_at', 'is', null)
        .$narrowType<{ client_certificate_id: number }>(),
    )
    .orderBy('issuers.id')
    .execute();
  return rows.map(({ id }) => id);
}

const presented = compiledQuery(
  (db, id: Expression<number>, name: Expression<string>, fingerprint: Expression<string>) =>
    db
      .selectFrom('certificates')
      .innerJoin('certificate_versions', 'certificate_versions.certificate_id', 'certificates.id')
      .select(['certificate_versions.chain_pem', 'certificate_versions.revoked_at'])
      .where('certificates.id', '=', id)
      .where('certificates.name', '=', name)
      .where('certificate_versions.fingerprint_sha256', '=', fingerprint),
);

/** The version with this fingerprint of the certificate with this id and name, also a superseded one. */
export async function findPresentedVersion(
  reader: Reader,
  { id, name }: { readonly id: number; readonly name: string },
  fingerprint: string,
): Promise<Pick<CertificateVersionRow, 'chain_pem' | 'revoked_at'> | undefined> {
  return (await presented(reader, id, name, fingerprint))[0];
}
