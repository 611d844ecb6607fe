/**
 * The table `deleted_certificates`: what restores a deleted certificate, beside its versions, until it is purged. In
 * `deleted_versions` are versions that older vaults moved there.
 */
import type { Insertable, Selectable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { DeletedCertificatesTable, DeletedVersionsTable } from '../../schema/schema-kept-keys.ts';

export type DeletedCertificateRow = Selectable<DeletedCertificatesTable>;
export type DeletedVersionRow = Selectable<DeletedVersionsTable>;

/** Adds a deleted certificate and returns its id. */
export async function insertDeletedCertificate(
  writer: Writer,
  row: Insertable<DeletedCertificatesTable>,
): Promise<number> {
  const { id } = await writer
    .insertInto('deleted_certificates')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

export async function findDeletedCertificate(
  reader: Reader,
  id: number,
): Promise<DeletedCertificateRow | undefined> {
  return reader.selectFrom('deleted_certificates').selectAll().where('id', '=', id).executeTakeFirst();
}

/** The certificate with this name that was deleted last. */
export async function findDeletedNamed(
  reader: Reader,
  name: string,
): Promise<DeletedCertificateRow | undefined> {
  return reader
    .selectFrom('deleted_certificates')
    .selectAll()
    .where('name', '=', name)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** In the order of deletion, at most `limit` after the id `after`. */
export async function listDeletedCertificates(
  reader: Reader,
  { after = 0, limit }: { readonly after?: number | undefined; readonly limit: number },
): Promise<DeletedCertificateRow[]> {
  return reader
    .selectFrom('deleted_certificates')
    .selectAll()
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** The first `limit` that were deleted before this time. */
export async function listDeletedBefore(
  reader: Reader,
  before: number,
  limit: number,
): Promise<DeletedCertificateRow[]> {
  return reader
    .selectFrom('deleted_certificates')
    .selectAll()
    .where('deleted_at', '<', before)
    .orderBy('deleted_at')
    .limit(limit)
    .execute();
}

/** Oldest first. */
export async function listDeletedVersions(reader: Reader, id: number): Promise<DeletedVersionRow[]> {
  return reader
    .selectFrom('deleted_versions')
    .selectAll()
    .where('deleted_certificate_id', '=', id)
    .orderBy('version')
    .execute();
}

/** Deletes it for all time, with versions that an older vault moved. */
export async function deleteDeletedCertificate(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('deleted_certificates').where('id', '=', id).execute();
}
