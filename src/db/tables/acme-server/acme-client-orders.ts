/** The table `acme_client_orders`: what ACME clients ordered at the directories of this vault. */
import { type Expression, type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { compiledInsert, compiledUpdate } from '../../compiled-change.ts';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { AcmeClientOrderStatus, AcmeClientOrdersTable } from '../../schema/schema-acme-server.ts';

export type AcmeClientOrderRow = Selectable<AcmeClientOrdersTable>;

/** In the words of the index of open orders, without which SQLite would not use it. */
const isOpen = sql<boolean>`status in ('pending', 'ready', 'processing')`;

/** In the words of the index of failed orders. */
const hasFailed = sql<boolean>`status = 'invalid'`;

const byId = compiledQuery((db, id: Expression<number>) =>
  db.selectFrom('acme_client_orders').selectAll().where('id', '=', id),
);

export async function findClientOrder(reader: Reader, id: number): Promise<AcmeClientOrderRow | undefined> {
  return (await byId(reader, id))[0];
}

const insertion = compiledInsert<{ readonly id: number }>('acme_client_orders', 'id');

/** Adds an order and returns its id. */
export async function insertClientOrder(
  writer: Writer,
  row: Insertable<AcmeClientOrdersTable>,
): Promise<number> {
  const inserted = await insertion(writer, row);
  if (inserted === undefined) throw new Error('an order got no id');
  return inserted.id;
}

const change = compiledUpdate('acme_client_orders', ['id', 'status']);

/** Changes an order that still has this status; returns false if it has another one by now. */
export async function updateClientOrder(
  writer: Writer,
  { id, status }: { readonly id: number; readonly status: AcmeClientOrderStatus },
  changes: Updateable<AcmeClientOrdersTable>,
): Promise<boolean> {
  return change(writer, changes, id, status);
}

/** The ids of an account's orders, newest first, at most `limit`; only those below `before` where it is given. */
export async function pageClientOrders(
  reader: Reader,
  accountId: number,
  { before, limit }: { readonly before?: number | undefined; readonly limit: number },
): Promise<number[]> {
  let query = reader
    .selectFrom('acme_client_orders')
    .select('id')
    .where('account_id', '=', accountId)
    .orderBy('account_id', 'desc')
    .orderBy('id', 'desc')
    .limit(limit);
  if (before !== undefined) query = query.where('id', '<', before);
  return (await query.execute()).map(({ id }) => id);
}

const nthLast = compiledQuery(
  (db, clientId: Expression<number>, since: Expression<number>, skipped: Expression<number>) =>
    db
      .selectFrom('acme_client_orders')
      .select('created_at')
      .where('acme_client_id', '=', clientId)
      .where('created_at', '>', since)
      .orderBy('created_at', 'desc')
      .limit(sql.lit(1))
      .offset(skipped),
);

/**
 * When the client's order was created that was followed by `count` - 1 others; undefined if it has ordered fewer times
 * after `since`.
 */
export async function orderedBeforeLast(
  reader: Reader,
  clientId: number,
  { count, since }: { readonly count: number; readonly since: number },
): Promise<number | undefined> {
  return (await nthLast(reader, clientId, since, count - 1))[0]?.created_at;
}

/** What counts towards the limit of a client: orders that it may still finish, and those that failed. */
export type OrderCounts = {
  readonly open: number;
  readonly failed: number;
  readonly firstFailure: number | null;
};

const limitedCounts = compiledQuery(
  (
    db,
    openOf: Expression<number>,
    now: Expression<number>,
    mostOpen: Expression<number>,
    failedOf: Expression<number>,
    since: Expression<number>,
    mostFailed: Expression<number>,
  ) =>
    db
      .selectFrom([
        db
          .selectFrom(
            db
              .selectFrom('acme_client_orders')
              .select('expires_at')
              .where('acme_client_id', '=', openOf)
              .where(isOpen)
              .where('expires_at', '>', now)
              .limit(mostOpen)
              .as('open_orders'),
          )
          .select((build) => build.fn.countAll<number>().as('open'))
          .as('opened'),
        db
          .selectFrom(
            db
              .selectFrom('acme_client_orders')
              .select('finished_at')
              .where('acme_client_id', '=', failedOf)
              .where(hasFailed)
              .where('finished_at', '>', since)
              .orderBy('finished_at')
              .limit(mostFailed)
              .as('failed_orders'),
          )
          .select((build) => [
            build.fn.countAll<number>().as('failed'),
            build.fn.min('finished_at').as('firstFailure'),
          ])
          .as('ended'),
      ])
      .select(['open', 'failed', 'firstFailure']),
);

/** The open orders of a client that have not expired, and those that failed after `since`; each at most `limit`. */
export async function countClientOrders(
  reader: Reader,
  clientId: number,
  { now, since, limit }: { readonly now: number; readonly since: number; readonly limit: number },
): Promise<OrderCounts> {
  const [found] = await limitedCounts(reader, clientId, now, limit, clientId, since, limit);
  if (found === undefined) throw new Error('a count has no row');
  const { open, failed, firstFailure } = found;
  return { open: Number(open), failed: Number(failed), firstFailure };
}

/** Whether an order that was not in vain replaces the certificate with this identifier (RFC 9773 §4.1). */
export async function isReplaced(reader: Reader, replaces: string, now: number): Promise<boolean> {
  const row = await reader
    .selectFrom('acme_client_orders')
    .select('id')
    .where('replaces', '=', replaces)
    .where((where) =>
      where.or([where('status', '=', 'valid'), where.and([isOpen, where('expires_at', '>', now)])]),
    )
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** When the first order expires, or did; undefined if there is none. */
export async function firstOrderExpiry(reader: Reader): Promise<number | undefined> {
  const row = await reader
    .selectFrom('acme_client_orders')
    .select('expires_at')
    .orderBy('expires_at')
    .limit(1)
    .executeTakeFirst();
  return row?.expires_at;
}

/** Deletes at most `limit` orders that expired before this time, oldest first, and returns how many. */
export async function deleteClientOrders(writer: Writer, before: number, limit: number): Promise<number> {
  const expired = writer
    .selectFrom('acme_client_orders')
    .select('id')
    .where('expires_at', '<', before)
    .orderBy('expires_at')
    .limit(limit);
  const { numDeletedRows } = await writer
    .deleteFrom('acme_client_orders')
    .where('id', 'in', expired)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** When the first order failed that is still kept; undefined if there is none. */
export async function firstOrderFailure(reader: Reader): Promise<number | undefined> {
  const row = await reader
    .selectFrom('acme_client_orders')
    .select('finished_at')
    .where(hasFailed)
    .where('finished_at', 'is not', null)
    .orderBy('finished_at')
    .limit(1)
    .executeTakeFirst();
  return row?.finished_at ?? undefined;
}

/** Deletes at most `limit` orders that failed before this time, oldest first, and returns how many. */
export async function deleteFailedOrders(writer: Writer, before: number, limit: number): Promise<number> {
  const failed = writer
    .selectFrom('acme_client_orders')
    .select('id')
    .where(hasFailed)
    .where('finished_at', '<', before)
    .orderBy('finished_at')
    .limit(limit);
  const { numDeletedRows } = await writer
    .deleteFrom('acme_client_orders')
    .where('id', 'in', failed)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
