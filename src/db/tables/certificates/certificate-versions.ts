/** The table `certificate_versions`: every version of each certificate, also of deleted ones until they are purged. */
import type { Expression, Insertable, Selectable } from 'kysely';
import { compiledInsert } from '../../compiled-change.ts';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { CertificateVersionsTable } from '../../schema/schema.ts';
import type { IdRange } from '../id-ranges.ts';

export type CertificateVersionRow = Selectable<CertificateVersionsTable>;

/** A version without its PEM and its key, as shown in lists. */
export type VersionSummaryRow = Omit<
  CertificateVersionRow,
  'certificate_pem' | 'chain_pem' | 'sealed_private_key'
>;

/** The displayed part of a version. */
export type ShownVersionRow = Omit<
  VersionSummaryRow,
  'id' | 'certificate_id' | 'acme_account_id' | 'directory_url' | 'revoked_at'
>;

const handedOutColumns = [
  ...(['certificate_id', 'version', 'created_at', 'certificate_pem', 'chain_pem'] as const),
  ...([
    'sealed_private_key',
    'certificate_etag',
    'chain_etag',
    'fullchain_etag',
    'private_key_etag',
  ] as const),
] as const;

/** The downloadable part of a version. */
export type HandedOutRow = Pick<CertificateVersionRow, (typeof handedOutColumns)[number]>;

const currentOf = compiledQuery((db, name: Expression<string>) =>
  db
    .selectFrom('certificates')
    .leftJoin('certificate_versions', (join) =>
      join
        .onRef('certificate_versions.certificate_id', '=', 'certificates.id')
        .onRef('certificate_versions.version', '=', 'certificates.current_version'),
    )
    .select([
      'certificates.id',
      ...handedOutColumns.map((column) => `certificate_versions.${column}` as const),
    ])
    .where('certificates.name', '=', name),
);

/** The id of a certificate and its current version, if any. */
export async function findCurrentVersion(
  reader: Reader,
  name: string,
): Promise<{ readonly id: number; readonly current: HandedOutRow | undefined } | undefined> {
  const [row] = await currentOf(reader, name);
  if (row === undefined) return undefined;
  const { id, ...version } = row;
  return { id, current: version.version === null ? undefined : (version as HandedOutRow) };
}

/** The numbers of the current versions of the certificates with these names, as many as one query can have. */
export async function currentVersions(
  reader: Reader,
  names: readonly string[],
): Promise<{ readonly name: string; readonly current_version: number | null }[]> {
  return reader
    .selectFrom('certificates')
    .select(['name', 'current_version'])
    .where('name', 'in', names)
    .execute();
}

const oneVersion = compiledQuery((db, certificateId: Expression<number>, version: Expression<number>) =>
  db
    .selectFrom('certificate_versions')
    .selectAll()
    .where('certificate_id', '=', certificateId)
    .where('version', '=', version),
);

export async function findVersion(
  reader: Reader,
  certificateId: number,
  version: number,
): Promise<CertificateVersionRow | undefined> {
  return (await oneVersion(reader, certificateId, version))[0];
}

/** At most `limit` versions, newest first, below `before` if given. */
export async function listVersions(
  reader: Reader,
  certificateId: number,
  { before, limit }: { readonly before?: number | undefined; readonly limit: number },
): Promise<CertificateVersionRow[]> {
  let query = reader
    .selectFrom('certificate_versions')
    .selectAll()
    .where('certificate_id', '=', certificateId)
    .orderBy('version', 'desc')
    .limit(limit);
  if (before !== undefined) query = query.where('version', '<', before);
  return query.execute();
}

/** Versions with this serial number: those of different CAs can have the same one, but only few. */
export async function listVersionsWithSerial(
  reader: Reader,
  serial: string,
): Promise<CertificateVersionRow[]> {
  return reader
    .selectFrom('certificate_versions')
    .selectAll()
    .where('serial', '=', serial)
    .orderBy('id', 'desc')
    .limit(maxWithSerial)
    .execute();
}

/** An import may repeat a certificate often. */
const maxWithSerial = 20;

/** How many versions a certificate has. */
export async function countVersions(reader: Reader, certificateId: number): Promise<number> {
  const { count } = await reader
    .selectFrom('certificate_versions')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('certificate_id', '=', certificateId)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Deletes the oldest versions of a certificate with their keys, at most `limit`. Returns how many. */
export async function deleteOldestVersions(
  writer: Writer,
  certificateId: number,
  limit: number,
): Promise<number> {
  const { numDeletedRows } = await writer
    .deleteFrom('certificate_versions')
    .where('id', 'in', ({ selectFrom }) =>
      selectFrom('certificate_versions')
        .select('id')
        .where('certificate_id', '=', certificateId)
        .orderBy('version')
        .limit(limit),
    )
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

const highestVersion = compiledQuery((db, certificateId: Expression<number>) =>
  db
    .selectFrom('certificate_versions')
    .select(({ fn }) => fn.max('version').as('version'))
    .where('certificate_id', '=', certificateId),
);

/** The highest version number of a certificate, or 0. */
export async function lastVersionNumber(reader: Reader, certificateId: number): Promise<number> {
  return (await highestVersion(reader, certificateId))[0]?.version ?? 0;
}

const insertion = compiledInsert('certificate_versions', 'nothing');

export async function insertVersion(
  writer: Writer,
  row: Insertable<CertificateVersionsTable>,
): Promise<void> {
  await insertion(writer, row);
}

/** Marks a version as revoked at its CA. */
export async function setVersionRevoked(writer: Writer, id: number, at: number): Promise<void> {
  await writer.updateTable('certificate_versions').set({ revoked_at: at }).where('id', '=', id).execute();
}

/** The numbers of the revoked versions of a certificate, newest first, at most `limit`. */
export async function listRevokedVersions(
  reader: Reader,
  certificateId: number,
  limit: number,
): Promise<number[]> {
  const rows = await reader
    .selectFrom('certificate_versions')
    .select('version')
    .where('certificate_id', '=', certificateId)
    .where('revoked_at', 'is not', null)
    .orderBy('version', 'desc')
    .limit(limit)
    .execute();
  return rows.map(({ version }) => version);
}

/** The current versions of a range of certificates that come from this directory; null for no ACME CA. */
export async function pageCurrentVersions(
  reader: Reader,
  { after, last }: IdRange,
  directoryUrl: string | null,
): Promise<Pick<CertificateVersionRow, 'certificate_id' | 'chain_pem'>[]> {
  return reader
    .selectFrom('certificates')
    .innerJoin('certificate_versions', (join) =>
      join
        .onRef('certificate_versions.certificate_id', '=', 'certificates.id')
        .onRef('certificate_versions.version', '=', 'certificates.current_version'),
    )
    .select(['certificate_versions.certificate_id', 'certificate_versions.chain_pem'])
    .where('certificates.id', '>', after)
    .where('certificates.id', '<=', last)
    .where('certificate_versions.directory_url', directoryUrl === null ? 'is' : '=', directoryUrl)
    .orderBy('certificates.id')
    .execute();
}
