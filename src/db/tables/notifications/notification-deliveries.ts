/** The table `notification_deliveries`: which channel receives which notification, and the state of the delivery. */
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { DeliveryStatus, NotificationDeliveriesTable } from '../../schema/schema-notifications.ts';

export type DeliveryRow = Selectable<NotificationDeliveriesTable>;
export type DeliveryChanges = Updateable<NotificationDeliveriesTable>;

/** Not delivered and not given up. A literal, so that SQLite uses the partial index of open deliveries. */
export const isOpen = sql<boolean>`notification_deliveries.status in ('queued', 'sending')`;

/** Adds a delivery and returns its id. */
export async function insertDelivery(
  writer: Writer,
  row: Insertable<NotificationDeliveriesTable>,
): Promise<number> {
  const { id } = await writer
    .insertInto('notification_deliveries')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

export async function findDelivery(reader: Reader, id: number): Promise<DeliveryRow | undefined> {
  return reader.selectFrom('notification_deliveries').selectAll().where('id', '=', id).executeTakeFirst();
}

export type DueLimits = {
  readonly exceptChannels?: readonly number[];
  readonly onlyChannel?: number;
  /** Includes deliveries without an attempt that are due within this time. */
  readonly newWithin?: number;
  /** No wait or lease is longer: longer ones were written while the clock was ahead. */
  readonly maxWait: number;
};

/** A delivery with its event. */
export type DueDeliveryRow = DeliveryRow & { readonly event: string };

/**
 * Deliveries that are due at `now` or whose lease has expired, longest due first; none of a disabled channel, and none
 * past its deadline.
 */
export async function listDueDeliveries(
  reader: Reader,
  now: number,
  { exceptChannels = [], onlyChannel, newWithin = 0, maxWait }: DueLimits,
  limit: number,
): Promise<DueDeliveryRow[]> {
  let query = reader
    .selectFrom('notification_deliveries')
    .innerJoin('notification_channels', 'notification_channels.id', 'notification_deliveries.channel_id')
    .innerJoin('notifications', 'notifications.id', 'notification_deliveries.notification_id')
    .selectAll('notification_deliveries')
    .select('event')
    .where(isOpen)
    .where('expires_at', '>', now)
    .where('notification_channels.disabled_at', 'is', null)
    .where(({ or, and, eb }) =>
      or([
        and([
          eb('status', '=', 'queued'),
          or([
            eb('next_attempt_at', '<=', now),
            and([eb('attempts', '=', 0), eb('next_attempt_at', '<=', now + newWithin)]),
            eb('next_attempt_at', '>', now + maxWait),
          ]),
        ]),
        and([
          eb('status', '=', 'sending'),
          or([eb('lease_expires_at', '<=', now), eb('lease_expires_at', '>', now + maxWait)]),
        ]),
      ]),
    );
  if (exceptChannels.length > 0) query = query.where('channel_id', 'not in', exceptChannels);
  if (onlyChannel !== undefined) query = query.where('channel_id', '=', onlyChannel);
  return query.orderBy('next_attempt_at').limit(limit).execute();
}

export async function updateDelivery(writer: Writer, id: number, changes: DeliveryChanges): Promise<void> {
  await writer.updateTable('notification_deliveries').set(changes).where('id', '=', id).execute();
}

/** Changes a delivery that is being sent, but only while `owner` still holds its lease. Returns whether it did. */
export async function updateLeasedDelivery(
  writer: Writer,
  id: number,
  owner: string,
  changes: DeliveryChanges,
): Promise<boolean> {
  const result = await writer
    .updateTable('notification_deliveries')
    .set(changes)
    .where('id', '=', id)
    .where('status', '=', 'sending')
    .where('lease_owner', '=', owner)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

/** A delivery with its notification and channel. */
export type NamedDeliveryRow = DeliveryRow & {
  readonly channel: string;
  readonly message_id: string;
  readonly event: string;
  readonly about: string | null;
};

export type DeliveryPage = {
  readonly channelId?: number | undefined;
  readonly status?: DeliveryStatus | undefined;
  readonly attemptedOnly?: boolean;
  /** Only deliveries older than the one with this id. */
  readonly before?: number | undefined;
  readonly limit: number;
};

/** Deliveries, newest first. */
export async function listDeliveries(
  reader: Reader,
  { channelId, status, attemptedOnly = false, before = Number.MAX_SAFE_INTEGER, limit }: DeliveryPage,
): Promise<NamedDeliveryRow[]> {
  let query = reader
    .selectFrom('notification_deliveries')
    .innerJoin('notifications', 'notifications.id', 'notification_deliveries.notification_id')
    .innerJoin('notification_channels', 'notification_channels.id', 'notification_deliveries.channel_id')
    .selectAll('notification_deliveries')
    .select(['notification_channels.name as channel', 'message_id', 'event', 'about'])
    .where('notification_deliveries.id', '<', before)
    .orderBy('notification_deliveries.id', 'desc')
    .limit(limit);
  if (channelId !== undefined) query = query.where('channel_id', '=', channelId);
  if (status !== undefined) query = query.where('status', '=', status);
  if (attemptedOnly) query = query.where('last_attempt_at', 'is not', null);
  return query.execute();
}

/** The number of open deliveries of a channel. */
export async function countOpen(reader: Reader, channelId: number): Promise<number> {
  const { count } = await reader
    .selectFrom('notification_deliveries')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where(isOpen)
    .where('channel_id', '=', channelId)
    .executeTakeFirstOrThrow();
  return count;
}

/** The number of deliveries that failed and will be retried. */
export async function countUntaken(reader: Reader): Promise<number> {
  const { count } = await reader
    .selectFrom('notification_deliveries')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where(isOpen)
    .where('error', 'is not', null)
    .executeTakeFirstOrThrow();
  return count;
}

/** Fails deliveries that passed their deadline and that no worker is sending. */
export async function expireDeliveries(writer: Writer, now: number, error: string): Promise<number> {
  const result = await writer
    .updateTable('notification_deliveries')
    .set({ status: 'failed', ended_at: now, lease_owner: null, lease_expires_at: null })
    .set(({ fn, val }) => ({ error: fn.coalesce('error', val(error)) }))
    .where(isOpen)
    .where('expires_at', '<=', now)
    .where(({ or, eb }) => or([eb('status', '=', 'queued'), eb('lease_expires_at', '<=', now)]))
    .executeTakeFirst();
  return Number(result.numUpdatedRows);
}

/**
 * Whether there is anything to prune, and up to which id: what finished before `endedBefore` or exceeds the newest
 * `most`.
 */
export async function oldDeliveries(
  reader: Reader,
  { endedBefore, most }: { readonly endedBefore: number; readonly most: number },
  limit: number,
): Promise<number[]> {
  const newest = await reader
    .selectFrom('notification_deliveries')
    .select('id')
    .orderBy('id', 'desc')
    .offset(most)
    .limit(1)
    .executeTakeFirst();
  const rows = await reader
    .selectFrom('notification_deliveries')
    .select('id')
    .where('ended_at', 'is not', null)
    .where(({ or, eb }) => or([eb('ended_at', '<', endedBefore), eb('id', '<=', newest?.id ?? 0)]))
    .orderBy('ended_at')
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** Deletes deliveries, and notifications without any. */
export async function deleteDeliveries(writer: Writer, ids: readonly number[]): Promise<void> {
  if (ids.length > 0) await writer.deleteFrom('notification_deliveries').where('id', 'in', ids).execute();
  await writer
    .deleteFrom('notifications')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('notification_deliveries')
            .select('notification_deliveries.id')
            .whereRef('notification_id', '=', 'notifications.id'),
        ),
      ),
    )
    .execute();
}
