/** The table `private_cas`: settings of private CAs. The built-in one has no row until they are changed. */
import type { Expression, Selectable } from 'kysely';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { PrivateCasTable } from '../../schema/schema-private-ca.ts';

export type PrivateCaRow = Selectable<PrivateCasTable>;

const ofIssuer = compiledQuery((db, issuerId: Expression<number>) =>
  db.selectFrom('private_cas').selectAll().where('issuer_id', '=', issuerId),
);

export async function findPrivateCa(reader: Reader, issuerId: number): Promise<PrivateCaRow | undefined> {
  return (await ofIssuer(reader, issuerId))[0];
}

/** Stores the settings, in place of those that there are. */
export async function putPrivateCa(writer: Writer, row: PrivateCaRow): Promise<void> {
  const { issuer_id: _, ...changes } = row;
  await writer
    .insertInto('private_cas')
    .values(row)
    .onConflict((conflict) => conflict.column('issuer_id').doUpdateSet(changes))
    .execute();
}
