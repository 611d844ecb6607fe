/**
 * The table `ca_requests`: keys of private CAs that await a certificate from a company's CA, at most one for each CA.
 */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { CaRequestsTable } from '../../schema/schema-private-ca.ts';

export type CaRequestRow = Selectable<CaRequestsTable>;

export async function findCaRequest(reader: Reader, issuerId: number): Promise<CaRequestRow | undefined> {
  return reader.selectFrom('ca_requests').selectAll().where('issuer_id', '=', issuerId).executeTakeFirst();
}

/** Stores the request, in place of the one that there is. */
export async function putCaRequest(writer: Writer, row: CaRequestRow): Promise<void> {
  const { issuer_id: _, ...changes } = row;
  await writer
    .insertInto('ca_requests')
    .values(row)
    .onConflict((conflict) => conflict.column('issuer_id').doUpdateSet(changes))
    .execute();
}

export async function deleteCaRequest(writer: Writer, issuerId: number): Promise<void> {
  await writer.deleteFrom('ca_requests').where('issuer_id', '=', issuerId).execute();
}
