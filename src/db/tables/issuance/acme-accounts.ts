/** The table `acme_accounts`: accounts at ACME CAs, with their sealed keys. */
import type { Insertable, Selectable, Updateable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { AcmeAccountsTable } from '../../schema/schema.ts';

export type AcmeAccountRow = Selectable<AcmeAccountsTable>;

/** An account and the names of the issuers that use it; it is current if there is one. */
export type AcmeAccountWithIssuers = AcmeAccountRow & { readonly issuers: readonly string[] };

export async function findAcmeAccount(reader: Reader, id: number): Promise<AcmeAccountRow | undefined> {
  return reader.selectFrom('acme_accounts').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Accounts in order of creation, after the id `after`, at most `limit`; all if omitted. */
export async function listAcmeAccounts(
  reader: Reader,
  { after = 0, limit }: { readonly after?: number | undefined; readonly limit?: number } = {},
): Promise<AcmeAccountWithIssuers[]> {
  let query = reader.selectFrom('acme_accounts').selectAll().where('id', '>', after).orderBy('id');
  if (limit !== undefined) query = query.limit(limit);
  const accounts = await query.execute();
  const users = await usersOfAccounts(
    reader,
    accounts.map(({ id }) => id),
  );
  return accounts.map((account) => ({
    ...account,
    issuers: users.filter(({ account_id }) => account_id === account.id).map(({ name }) => name),
  }));
}

/** Usable accounts at this directory, newest first. */
export async function listUsableAccounts(reader: Reader, directoryUrl: string): Promise<AcmeAccountRow[]> {
  return reader
    .selectFrom('acme_accounts')
    .selectAll()
    .where('directory_url', '=', directoryUrl)
    .where('status', 'in', ['registering', 'valid'])
    .orderBy('id', 'desc')
    .execute();
}

/** Adds an account and returns its id. */
export async function insertAcmeAccount(writer: Writer, row: Insertable<AcmeAccountsTable>): Promise<number> {
  const { id } = await writer
    .insertInto('acme_accounts')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

export async function updateAcmeAccount(
  writer: Writer,
  id: number,
  changes: Updateable<AcmeAccountsTable>,
): Promise<void> {
  await writer.updateTable('acme_accounts').set(changes).where('id', '=', id).execute();
}

/** Deletes an account; its versions and renewals stay. Fails while an issuer uses it. */
export async function deleteAcmeAccountRow(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('acme_accounts').where('id', '=', id).execute();
}

/** The names of the issuers that use an account, in order. */
export async function issuersOfAcmeAccount(reader: Reader, id: number): Promise<string[]> {
  return (await usersOfAccounts(reader, [id])).map(({ name }) => name);
}

async function usersOfAccounts(
  reader: Reader,
  ids: readonly number[],
): Promise<{ name: string; account_id: number | null }[]> {
  return reader
    .selectFrom('acme_issuers')
    .innerJoin('issuers', 'issuers.id', 'acme_issuers.issuer_id')
    .select(['issuers.name', 'acme_issuers.account_id'])
    .where('acme_issuers.account_id', 'in', ids)
    .orderBy('issuers.name')
    .execute();
}
