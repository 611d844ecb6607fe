/** The tables `issuers` and `acme_issuers`: which issuers exist, and how to reach their CAs. */
import type { Expression, Insertable, Selectable, Updateable } from 'kysely';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { AcmeIssuersTable, IssuersTable } from '../../schema/schema.ts';

export type IssuerRow = Selectable<IssuersTable>;
export type AcmeIssuerRow = Selectable<AcmeIssuersTable>;

const byName = compiledQuery((db, name: Expression<string>) =>
  db.selectFrom('issuers').selectAll().where('name', '=', name),
);

export async function findIssuer(reader: Reader, name: string): Promise<IssuerRow | undefined> {
  return (await byName(reader, name))[0];
}

const byId = compiledQuery((db, id: Expression<number>) =>
  db.selectFrom('issuers').selectAll().where('id', '=', id),
);

export async function findIssuerById(reader: Reader, id: number): Promise<IssuerRow | undefined> {
  return (await byId(reader, id))[0];
}

export async function listIssuers(reader: Reader): Promise<IssuerRow[]> {
  return reader.selectFrom('issuers').selectAll().orderBy('name').execute();
}

/** Adds an issuer and returns its id. */
export async function insertIssuer(writer: Writer, row: Omit<IssuerRow, 'id'>): Promise<number> {
  const { id } = await writer.insertInto('issuers').values(row).returning('id').executeTakeFirstOrThrow();
  return id;
}

/** Deletes an issuer. Fails while a certificate uses it. */
export async function deleteIssuerRow(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('issuers').where('id', '=', id).execute();
}

/** The CA of an issuer of type `acme`. */
export async function findAcmeIssuer(reader: Reader, issuerId: number): Promise<AcmeIssuerRow | undefined> {
  return reader.selectFrom('acme_issuers').selectAll().where('issuer_id', '=', issuerId).executeTakeFirst();
}

export async function insertAcmeIssuer(writer: Writer, row: Insertable<AcmeIssuersTable>): Promise<void> {
  await writer.insertInto('acme_issuers').values(row).execute();
}

export async function updateAcmeIssuer(
  writer: Writer,
  issuerId: number,
  changes: Updateable<AcmeIssuersTable>,
): Promise<void> {
  await writer.updateTable('acme_issuers').set(changes).where('issuer_id', '=', issuerId).execute();
}

/** Shortens every pause to end no later than `latest`. */
export async function shortenPauses(writer: Writer, latest: number): Promise<void> {
  const changes = { paused_until: latest };
  await writer.updateTable('acme_issuers').set(changes).where('paused_until', '>', latest).execute();
}

/** Names of certificates that use this issuer, directly or as fallback; at most `limit`. */
export async function certificatesOfIssuer(
  reader: Reader,
  issuerId: number,
  limit: number,
): Promise<string[]> {
  const rows = await reader
    .selectFrom('certificates')
    .select('name')
    .where(({ or, eb }) => or([eb('issuer_id', '=', issuerId), eb('fallback_issuer_id', '=', issuerId)]))
    .orderBy('name')
    .limit(limit)
    .execute();
  return rows.map(({ name }) => name);
}

/** Any issuer with this directory: all of them have the same trust root. */
export async function findCaOfDirectory(
  reader: Reader,
  directoryUrl: string,
): Promise<AcmeIssuerRow | undefined> {
  return reader
    .selectFrom('acme_issuers')
    .selectAll()
    .where('directory_url', '=', directoryUrl)
    .limit(1)
    .executeTakeFirst();
}
