/** The table `certificates`: the settings of each certificate and which version is current. */
import { type Expression, type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { compiledInsert, compiledUpdate } from '../../compiled-change.ts';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { CertificatesTable } from '../../schema/schema.ts';
import { isOpen } from '../renewals/renewals.ts';

export type CertificateRow = Selectable<CertificatesTable>;

const byName = compiledQuery((db, name: Expression<string>) =>
  db.selectFrom('certificates').selectAll().where('name', '=', name),
);

export async function findCertificate(reader: Reader, name: string): Promise<CertificateRow | undefined> {
  return (await byName(reader, name))[0];
}

/** How many names one query contains: databases limit the number of values per statement. */
const namesAtOnce = 500;

/** The ids of the certificates that exist, by name. */
export async function findCertificateIds(
  reader: Reader,
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const ids = new Map<string, number>();
  for (let start = 0; start < names.length; start += namesAtOnce) {
    const rows = await reader
      .selectFrom('certificates')
      .select(['id', 'name'])
      .where('name', 'in', names.slice(start, start + namesAtOnce))
      .execute();
    for (const { id, name } of rows) ids.set(name, id);
  }
  return ids;
}

const byId = compiledQuery((db, id: Expression<number>) =>
  db.selectFrom('certificates').selectAll().where('id', '=', id),
);

export async function findCertificateById(reader: Reader, id: number): Promise<CertificateRow | undefined> {
  return (await byId(reader, id))[0];
}

const ofOwner = compiledQuery(
  (db, clientId: Expression<number>, issuerId: Expression<number>, ownedNames: Expression<string>) =>
    db
      .selectFrom('certificates')
      .selectAll()
      .where('acme_client_id', '=', clientId)
      .where('issuer_id', '=', issuerId)
      .where('owned_names', '=', ownedNames)
      .orderBy('id')
      .limit(sql.lit(1)),
);

/** The certificate of this ACME client and issuer with these names, as `owned_names` has them. */
export async function findOwnedCertificate(
  reader: Reader,
  clientId: number,
  issuerId: number,
  ownedNames: string,
): Promise<CertificateRow | undefined> {
  return (await ofOwner(reader, clientId, issuerId, ownedNames))[0];
}

/** The longest lifetime that a certificate of this issuer asks for; 0 if none asks for one. */
export async function longestLifetime(reader: Reader, issuerId: number): Promise<number> {
  const row = await reader
    .selectFrom('certificates')
    .select(({ fn }) => fn.max('lifetime').as('longest'))
    .where('issuer_id', '=', issuerId)
    .executeTakeFirst();
  return Number(row?.longest ?? 0);
}

/** Names in order, at most `limit`. */
export async function listCertificateNames(reader: Reader, limit: number): Promise<string[]> {
  const rows = await reader.selectFrom('certificates').select('name').orderBy('name').limit(limit).execute();
  return rows.map(({ name }) => name);
}

/** Certificates that are not disabled and use this issuer, directly or as fallback, in the order of their ids. */
export async function pageCertificatesOfIssuer(
  reader: Reader,
  issuerId: number,
  after: number,
  limit: number,
): Promise<CertificateRow[]> {
  return reader
    .selectFrom('certificates')
    .selectAll()
    .where(({ or, eb }) => or([eb('issuer_id', '=', issuerId), eb('fallback_issuer_id', '=', issuerId)]))
    .where('disabled_at', 'is', null)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Certificates that are due for renewal and have no open renewal. */
export async function listDueCertificates(
  reader: Reader,
  now: number,
  limit: number,
): Promise<CertificateRow[]> {
  return (
    reader
      .selectFrom('certificates')
      .selectAll()
      // A literal, not a parameter: only then does SQLite use the partial index.
      .where(({ eb, lit }) => eb('auto_renew', '=', lit(1)))
      .where('next_renewal_at', 'is not', null)
      .where('next_renewal_at', '<=', now)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('renewals')
              .select('renewals.id')
              .whereRef('renewals.certificate_id', '=', 'certificates.id')
              .where(isOpen),
          ),
        ),
      )
      .orderBy('next_renewal_at')
      .limit(limit)
      .execute()
  );
}

/** The first time after `now` at which a renewal is due, or undefined. */
export async function nextMoment(reader: Reader, now: number): Promise<number | undefined> {
  const row = await reader
    .selectFrom('certificates')
    .select('next_renewal_at')
    .where(({ eb, lit }) => eb('auto_renew', '=', lit(1)))
    .where('next_renewal_at', '>', now)
    .orderBy('next_renewal_at')
    .limit(1)
    .executeTakeFirst();
  return row?.next_renewal_at ?? undefined;
}

/** Certificates whose renewal window is due to be queried from the CA. */
export async function listAriDue(reader: Reader, now: number, limit: number): Promise<CertificateRow[]> {
  return reader
    .selectFrom('certificates')
    .selectAll()
    .where(({ eb, lit }) => eb('auto_renew', '=', lit(1)))
    .where('ari_check_at', 'is not', null)
    .where('ari_check_at', '<=', now)
    .where('disabled_at', 'is', null)
    .orderBy('ari_check_at')
    .limit(limit)
    .execute();
}

/**
 * Postpones to `until` the queries of renewal windows that are due at `now` for certificates of this directory, at most
 * `limit` of them. Returns how many were postponed.
 */
export async function postponeAri(
  writer: Writer,
  directoryUrl: string,
  now: number,
  until: number,
  limit: number,
): Promise<number> {
  const { numUpdatedRows } = await writer
    .updateTable('certificates')
    .set({ ari_check_at: until })
    .where('id', 'in', ({ selectFrom }) =>
      selectFrom('certificates')
        .innerJoin('certificate_versions', (join) =>
          join
            .onRef('certificate_versions.certificate_id', '=', 'certificates.id')
            .onRef('certificate_versions.version', '=', 'certificates.current_version'),
        )
        .select('certificates.id')
        .where(({ eb, lit }) => eb('certificates.auto_renew', '=', lit(1)))
        .where('certificates.ari_check_at', 'is not', null)
        .where('certificates.ari_check_at', '<=', now)
        .where('certificate_versions.directory_url', '=', directoryUrl)
        .limit(limit),
    )
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Adds a certificate and returns its id. */
export async function insertCertificate(writer: Writer, row: Insertable<CertificatesTable>): Promise<number> {
  const { id } = await writer
    .insertInto('certificates')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

const insertion = compiledInsert<CertificateRow>('certificates', 'all');

/** Adds a certificate and returns its row. */
export async function insertWholeCertificate(
  writer: Writer,
  row: Insertable<CertificatesTable>,
): Promise<CertificateRow> {
  return (await insertion(writer, row)) as CertificateRow;
}

const change = compiledUpdate('certificates', ['id']);

export async function updateCertificate(
  writer: Writer,
  id: number,
  changes: Updateable<CertificatesTable>,
): Promise<void> {
  await change(writer, changes, id);
}

/** Deletes the certificate and, by cascade, its renewals; its versions stay. Fails while an allowlist names it. */
export async function deleteCertificateRow(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('certificates').where('id', '=', id).execute();
}
