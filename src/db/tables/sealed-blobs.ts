/**
 * All columns with sealed blobs, and how to iterate over them during a master key rotation. A blob reveals its key
 * without being opened: one format byte is followed by eight bytes with the id of the key. An empty one stands for a
 * secret that the vault does not hold.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Reader, Writer } from '../database.ts';

/**
 * `id` is the primary key of the table, and `record` the SQL of the owner of the blob (`BlobOwner.record`); binary ones
 * stand for their hexadecimal text. Every new `sealed_…` column belongs here.
 */
export const sealedPlaces = {
  'certificate_versions.sealed_private_key': {
    table: 'certificate_versions',
    id: 'id',
    column: 'sealed_private_key',
    record: "certificate_id || '/' || version",
  },
  'renewals.sealed_private_key': {
    table: 'renewals',
    id: 'id',
    column: 'sealed_private_key',
    record: "id || ''",
  },
  'next_keys.sealed_private_key': {
    table: 'next_keys',
    id: 'certificate_id',
    column: 'sealed_private_key',
    record: "certificate_id || '/next'",
  },
  'deleted_versions.sealed_private_key': {
    table: 'deleted_versions',
    id: 'id',
    column: 'sealed_private_key',
    record: "deleted_certificate_id || '/' || version",
  },
  'ca_certificates.sealed_private_key': {
    table: 'ca_certificates',
    id: 'id',
    column: 'sealed_private_key',
    record: "id || ''",
  },
  'ca_requests.sealed_private_key': {
    table: 'ca_requests',
    id: 'issuer_id',
    column: 'sealed_private_key',
    record: "issuer_id || ''",
  },
  'acme_accounts.sealed_private_key': {
    table: 'acme_accounts',
    id: 'id',
    column: 'sealed_private_key',
    record: "id || ''",
  },
  'acme_accounts.sealed_next_private_key': {
    table: 'acme_accounts',
    id: 'id',
    column: 'sealed_next_private_key',
    record: "id || '/next'",
  },
  'acme_issuers.sealed_eab_key': {
    table: 'acme_issuers',
    id: 'issuer_id',
    column: 'sealed_eab_key',
    record: "issuer_id || ''",
  },
  'acme_clients.sealed_hmac_key': {
    table: 'acme_clients',
    id: 'id',
    column: 'sealed_hmac_key',
    record: "id || ''",
  },
  'dns_providers.sealed_secret': {
    table: 'dns_providers',
    id: 'id',
    column: 'sealed_secret',
    record: "id || ''",
  },
  'notification_channels.sealed_settings': {
    table: 'notification_channels',
    id: 'id',
    column: 'sealed_settings',
    record: "id || ''",
  },
  'deploy_targets.sealed_settings': {
    table: 'deploy_targets',
    id: 'id',
    column: 'sealed_settings',
    record: "id || ''",
  },
  'authenticator_apps.sealed_secret': {
    table: 'authenticator_apps',
    id: 'id',
    column: 'sealed_secret',
    record: "id || ''",
  },
  'audit_keys.sealed_private_key': {
    table: 'audit_keys',
    id: 'id',
    column: 'sealed_private_key',
    record: 'public_key',
  },
} as const;

export type SealedPlace = keyof typeof sealedPlaces;

export const sealedPlaceNames = Object.keys(sealedPlaces) as SealedPlace[];

export type SealedRow = { readonly row: number; readonly record: string; readonly blob: Buffer };

/** The number of blobs per column and master key. Reads all rows, which takes a second for 100,000. */
export async function countSealedBlobs(
  reader: Reader,
): Promise<{ place: SealedPlace; key: string; blobs: number }[]> {
  const counts: { place: SealedPlace; key: string; blobs: number }[] = [];
  for (const place of sealedPlaceNames) {
    const { table, column } = names(place);
    const { rows } = await sql<{ key: Buffer; blobs: number }>`
      select substr(${column}, 2, 8) as key, count(*) as blobs
      from ${table} where length(${column}) > 0 group by 1 order by 1`.execute(reader);
    counts.push(...rows.map(({ key, blobs }) => ({ place, key: key.toString('hex'), blobs })));
  }
  return counts;
}

/** Blobs in a column sealed by keys other than `key`, at most `limit`, by row, after the row `after`. */
export async function listBlobsOfOtherKeys(
  reader: Reader,
  place: SealedPlace,
  { key, after, limit }: { readonly key: Buffer; readonly after: number; readonly limit: number },
): Promise<SealedRow[]> {
  const { table, id, column, record } = names(place);
  const { rows } = await sql<Omit<SealedRow, 'record'> & { readonly record: string | Buffer }>`
    select ${id} as row, ${record} as record, ${column} as blob from ${table}
    where ${id} > ${after} and length(${column}) > 0 and substr(${column}, 2, 8) <> ${key}
    order by ${id} limit ${limit}`.execute(reader);
  return rows.map((row) => ({
    ...row,
    record: typeof row.record === 'string' ? row.record : row.record.toString('hex'),
  }));
}

/** Replaces a blob. */
export async function replaceBlob(
  writer: Writer,
  place: SealedPlace,
  row: number,
  blob: Buffer,
): Promise<void> {
  const { table, id, column } = names(place);
  await sql`update ${table} set ${column} = ${blob} where ${id} = ${row}`.execute(writer);
}

function names(place: SealedPlace): Record<'table' | 'id' | 'column' | 'record', RawBuilder<unknown>> {
  const { table, id, column, record } = sealedPlaces[place];
  return { table: sql.table(table), id: sql.ref(id), column: sql.ref(column), record: sql.raw(record) };
}
