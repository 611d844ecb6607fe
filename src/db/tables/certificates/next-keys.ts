/** The table `next_keys`: at most one key per certificate, generated before the renewal that uses it. */
import type { Expression, Selectable } from 'kysely';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { NextKeysTable } from '../../schema/schema-kept-keys.ts';

export type NextKeyRow = Selectable<NextKeysTable>;

const ofCertificate = compiledQuery((db, certificateId: Expression<number>) =>
  db.selectFrom('next_keys').selectAll().where('certificate_id', '=', certificateId),
);

/** The next key of the certificate with this id. */
export async function findNextKey(reader: Reader, certificateId: number): Promise<NextKeyRow | undefined> {
  return (await ofCertificate(reader, certificateId))[0];
}

/** The certificates that have a next key, by name, at most `limit`. */
export async function listNextKeys(
  reader: Reader,
  limit: number,
): Promise<{ name: string; pin: string; next_renewal_at: number | null }[]> {
  return reader
    .selectFrom('next_keys')
    .innerJoin('certificates', 'certificates.id', 'next_keys.certificate_id')
    .select(['certificates.name', 'certificates.next_renewal_at', 'next_keys.pin'])
    .orderBy('certificates.name')
    .limit(limit)
    .execute();
}

/** Stores the next key of a certificate that has none. */
export async function insertNextKey(writer: Writer, row: NextKeyRow): Promise<void> {
  await writer.insertInto('next_keys').values(row).execute();
}

/** Deletes the next key; with `pin`, only if it is the key with this pin. */
export async function deleteNextKey(writer: Writer, certificateId: number, pin?: string): Promise<void> {
  let query = writer.deleteFrom('next_keys').where('certificate_id', '=', certificateId);
  if (pin !== undefined) query = query.where('pin', '=', pin);
  await query.execute();
}
