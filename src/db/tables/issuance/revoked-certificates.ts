/**
 * The table `revoked_certificates`: revoked certificates of private CAs until an expired one has been on its last CRL.
 */
import type { Insertable, Selectable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { RevokedCertificatesTable } from '../../schema/schema-private-ca.ts';

export type RevokedCertificateRow = Selectable<RevokedCertificatesTable>;

/** Adds a revoked certificate, unless it is there already. */
export async function insertRevokedCertificate(
  writer: Writer,
  row: Insertable<RevokedCertificatesTable>,
): Promise<void> {
  await writer
    .insertInto('revoked_certificates')
    .values(row)
    .onConflict((conflict) => conflict.columns(['ca_certificate_id', 'serial']).doNothing())
    .execute();
}

/** The next `limit` that this CA certificate issued and that expire after `expiresAfter`, in the order of their ids. */
export async function listRevokedCertificates(
  reader: Reader,
  caCertificateId: number,
  page: { readonly after: number; readonly expiresAfter: number; readonly limit: number },
): Promise<Pick<RevokedCertificateRow, 'id' | 'serial' | 'reason' | 'revoked_at'>[]> {
  return reader
    .selectFrom('revoked_certificates')
    .select(['id', 'serial', 'reason', 'revoked_at'])
    .where('ca_certificate_id', '=', caCertificateId)
    .where('id', '>', page.after)
    .where('not_after', '>', page.expiresAfter)
    .orderBy('id')
    .limit(page.limit)
    .execute();
}

/** Deletes those that this CA certificate issued and that expired at this time or before. */
export async function deleteExpiredRevocations(
  writer: Writer,
  caCertificateId: number,
  expired: number,
): Promise<void> {
  await writer
    .deleteFrom('revoked_certificates')
    .where('ca_certificate_id', '=', caCertificateId)
    .where('not_after', '<=', expired)
    .execute();
}

/** Whether the certificate with this serial number is on the CRL of this CA certificate, or will be on its next one. */
export async function isOnCrl(reader: Reader, caCertificateId: number, serial: string): Promise<boolean> {
  const found = await reader
    .selectFrom('revoked_certificates')
    .select('id')
    .where('ca_certificate_id', '=', caCertificateId)
    .where('serial', '=', serial)
    .executeTakeFirst();
  return found !== undefined;
}
