/** The table `issuers`: who can make versions of certificates. */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from './database.ts';
import type { IssuersTable } from './schema.ts';

export type IssuerRow = Selectable<IssuersTable>;

export async function findIssuer(reader: Reader, name: string): Promise<IssuerRow | undefined> {
  return reader.selectFrom('issuers').selectAll().where('name', '=', name).executeTakeFirst();
}

export async function listIssuers(reader: Reader): Promise<IssuerRow[]> {
  return reader.selectFrom('issuers').selectAll().orderBy('name').execute();
}

/** Adds an issuer and returns its id. */
export async function insertIssuer(writer: Writer, row: Omit<IssuerRow, 'id'>): Promise<number> {
  const { id } = await writer.insertInto('issuers').values(row).returning('id').executeTakeFirstOrThrow();
  return id;
}
