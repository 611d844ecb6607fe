/** The table `acme_client_accounts`: the accounts of ACME clients at the directories of this vault. */
import { type Expression, type Insertable, type Selectable, sql } from 'kysely';
import { type Recorded, recordedLink } from '../../audit/row-records.ts';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { AcmeClientAccountsTable } from '../../schema/schema-acme-server.ts';

export type AcmeClientAccountRow = Selectable<AcmeClientAccountsTable>;

const byId = compiledQuery((db, id: Expression<number>) =>
  db
    .selectFrom('acme_client_accounts')
    .selectAll()
    .select(recordedLink('acme-client-account', 'acme_client_accounts.id'))
    .where('id', '=', id),
);

export async function findClientAccount(
  reader: Reader,
  id: number,
): Promise<(AcmeClientAccountRow & Recorded) | undefined> {
  return (await byId(reader, id))[0];
}

const byKey = compiledQuery((db, issuerId: Expression<number>, thumbprint: Expression<string>) =>
  db
    .selectFrom('acme_client_accounts')
    .selectAll()
    .select(recordedLink('acme-client-account', 'acme_client_accounts.id'))
    .where('issuer_id', '=', issuerId)
    .where('thumbprint', '=', thumbprint),
);

/** The account with this key at the directory of an issuer. */
export async function findClientAccountByKey(
  reader: Reader,
  issuerId: number,
  thumbprint: string,
): Promise<(AcmeClientAccountRow & Recorded) | undefined> {
  return (await byKey(reader, issuerId, thumbprint))[0];
}

const skipping = compiledQuery((db, clientId: Expression<number>, skipped: Expression<number>) =>
  db
    .selectFrom('acme_client_accounts')
    .select('id')
    .where('acme_client_id', '=', clientId)
    .orderBy('id')
    .limit(sql.lit(1))
    .offset(skipped),
);

/** Whether the client has more than `count` accounts, deactivated ones included. */
export async function hasMoreAccounts(reader: Reader, clientId: number, count: number): Promise<boolean> {
  return (await skipping(reader, clientId, count)).length > 0;
}

/** Adds an account, which is tagged afterwards, and returns its id; undefined if one of the issuer has its key. */
export async function insertClientAccount(
  writer: Writer,
  row: Omit<Insertable<AcmeClientAccountsTable>, 'tag'>,
): Promise<number | undefined> {
  const added = await writer
    .insertInto('acme_client_accounts')
    .values(row)
    .onConflict((conflict) => conflict.columns(['issuer_id', 'thumbprint']).doNothing())
    .returning('id')
    .executeTakeFirst();
  return added?.id;
}

/** Replaces what an account can change, and its tag. */
export async function updateClientAccount(
  writer: Writer,
  id: number,
  changes: Pick<AcmeClientAccountRow, 'thumbprint' | 'jwk' | 'contacts' | 'status' | 'tag'>,
): Promise<void> {
  await writer.updateTable('acme_client_accounts').set(changes).where('id', '=', id).execute();
}
