/** Orders in the table `acme_client_orders` whose certificate the vault orders at another CA, by a renewal. */
import type { Updateable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import { withoutIndex } from '../../engine-sql.ts';
import type { AcmeClientOrdersTable } from '../../schema/schema-acme-server.ts';
import { isOpen } from '../renewals/renewals.ts';

/** Changes the orders that wait for this renewal. */
export async function updateWaitingOrders(
  writer: Writer,
  renewalId: number,
  changes: Updateable<AcmeClientOrdersTable>,
): Promise<void> {
  await writer
    .updateTable('acme_client_orders')
    .set(changes)
    .where('renewal_id', '=', renewalId)
    .where('status', '=', 'processing')
    .execute();
}

/** A queued or running renewal at this issuer for this set of names, of whichever certificate. */
export async function findOpenForNames(
  reader: Reader,
  issuerId: number,
  nameSet: string,
): Promise<{ readonly id: number } | undefined> {
  return (
    reader
      .selectFrom('renewals')
      .select('id')
      .where(isOpen)
      // Of the open renewals, and not of all that the issuer ever had.
      .where(withoutIndex<number | null>('renewals.issuer_id'), '=', issuerId)
      .where('name_set', '=', nameSet)
      .limit(1)
      .executeTakeFirst()
  );
}

export type EndedOrder = {
  readonly client: string;
  readonly issuer: string;
  readonly created_at: number;
  readonly finished_at: number | null;
};

/** The orders of this renewal, with the names of their clients and issuers. */
export async function listOrdersOf(reader: Reader, renewalId: number): Promise<EndedOrder[]> {
  return reader
    .selectFrom('acme_client_orders')
    .innerJoin('acme_clients', 'acme_clients.id', 'acme_client_orders.acme_client_id')
    .innerJoin('acme_client_accounts', 'acme_client_accounts.id', 'acme_client_orders.account_id')
    .innerJoin('issuers', 'issuers.id', 'acme_client_accounts.issuer_id')
    .select(['acme_clients.name as client', 'issuers.name as issuer'])
    .select(['acme_client_orders.created_at', 'acme_client_orders.finished_at'])
    .where('acme_client_orders.renewal_id', '=', renewalId)
    .execute();
}
