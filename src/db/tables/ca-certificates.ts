/** The table `ca_certificates`: roots and intermediates of private CAs, with their sealed keys. */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from '../database.ts';
import type { CaCertificatesTable } from '../schema/schema.ts';

export type CaCertificateRow = Selectable<CaCertificatesTable>;

/** The CA certificate with this role that expires last. */
export async function findCaCertificate(
  reader: Reader,
  issuerId: number,
  role: CaCertificateRow['role'],
): Promise<CaCertificateRow | undefined> {
  return reader
    .selectFrom('ca_certificates')
    .selectAll()
    .where('issuer_id', '=', issuerId)
    .where('role', '=', role)
    .orderBy('not_after', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Adds a CA certificate and returns its id. */
export async function insertCaCertificate(
  writer: Writer,
  row: Omit<CaCertificateRow, 'id'>,
): Promise<number> {
  const { id } = await writer
    .insertInto('ca_certificates')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

/** Stores the sealed key; it is sealed for the id of the row, which is known only after the insert. */
export async function setCaPrivateKey(writer: Writer, id: number, sealed: Buffer): Promise<void> {
  await writer
    .updateTable('ca_certificates')
    .set({ sealed_private_key: sealed })
    .where('id', '=', id)
    .execute();
}
