/**
 * What the order of deliveries depends on: which channels sent much lately or accept nothing, and what was queued
 * later.
 */
import type { Reader } from '../../database.ts';
import { isOpen } from './notification-deliveries.ts';

export type RecentlyNotified = {
  readonly since: number;
  readonly until: number;
  readonly notOf: readonly string[];
};

/** Channels of these types that delivered at least this many notifications recently, not counting these events. */
export async function channelsNotifiedSince(
  reader: Reader,
  types: readonly string[],
  { since, until, notOf }: RecentlyNotified,
  atLeast: number,
): Promise<number[]> {
  const rows = await reader
    .selectFrom('notification_deliveries')
    .innerJoin('notification_channels', 'notification_channels.id', 'notification_deliveries.channel_id')
    .innerJoin('notifications', 'notifications.id', 'notification_deliveries.notification_id')
    .select('channel_id')
    .where('status', '=', 'delivered')
    .where('ended_at', '>', since)
    .where('ended_at', '<=', until)
    .where('notification_channels.type', 'in', types)
    .where('event', 'not in', notOf)
    .groupBy('channel_id')
    .having(({ fn }) => fn.countAll(), '>=', atLeast)
    .execute();
  return rows.map(({ channel_id }) => channel_id);
}

/**
 * Channels that accepted nothing since an attempt after `since` (UTC milliseconds) failed, while the retry of that
 * attempt is still to come.
 */
export async function channelsFailingSince(reader: Reader, since: number, now: number): Promise<number[]> {
  const rows = await reader
    .selectFrom('notification_deliveries')
    .select('channel_id')
    .distinct()
    .where(isOpen)
    .where('status', '=', 'queued')
    .where('error', 'is not', null)
    .where('next_attempt_at', '>', now)
    .where('last_attempt_at', '>', since)
    .where('last_attempt_at', '<=', now)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('notification_deliveries as later')
            .select('later.id')
            .whereRef('later.channel_id', '=', 'notification_deliveries.channel_id')
            .where('later.status', '=', 'delivered')
            .where('later.ended_at', '>', since)
            .whereRef('later.last_attempt_at', '>=', 'notification_deliveries.last_attempt_at'),
        ),
      ),
    )
    .execute();
  return rows.map(({ channel_id }) => channel_id);
}

/** Whether a notice with one of these events about the same was queued for the channel after this delivery. */
export async function wasQueuedLater(
  reader: Reader,
  delivery: { readonly id: number; readonly channel_id: number },
  events: readonly string[],
  about: string | null,
): Promise<boolean> {
  if (events.length === 0) return false;
  const found = await reader
    .selectFrom('notification_deliveries')
    .innerJoin('notifications', 'notifications.id', 'notification_deliveries.notification_id')
    .select('notification_deliveries.id')
    .where('channel_id', '=', delivery.channel_id)
    .where('notification_deliveries.id', '>', delivery.id)
    .where('event', 'in', events)
    .where('about', about === null ? 'is' : '=', about)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}
