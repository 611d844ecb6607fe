/**
 * Claims deliveries under a lease before they are attempted: one at a time, or several for channels that gather
 * messages.
 */
import { day, minute } from '../../base/duration.ts';
import { channelTypes, isGathering } from '../../channels/channel-types.ts';
import type { Writer } from '../../db/database.ts';
import { type ChannelRow, findChannelById } from '../../db/tables/notifications/notification-channels.ts';
import {
  type DeliveryRow,
  type DueDeliveryRow,
  listDueDeliveries,
  updateDelivery,
} from '../../db/tables/notifications/notification-deliveries.ts';
import { channelsFailingSince } from '../../db/tables/notifications/notification-pace.ts';
import type { TimedContext } from '../contexts.ts';
import type { OwnersContext } from '../nodes/lease-owners.ts';
import { maxGathered, sentAlone, throttledChannels } from './notification-gathering.ts';
import { gatheredFor } from './notification-queue.ts';

/** A delivery scheduled further ahead, or leased for longer, was written by a wrong clock. */
const maxWait = 2 * day;

/**
 * A channel that failed makes no other attempt until that delivery is due again, at most this long: the others would
 * fail too, and one attempt is enough to notice that it works again.
 */
const maxRest = 5 * minute;

/** Added to the time limit of an attempt: an owner that exceeds both is dead. */
const leaseSlack = minute;

/** One delivery, or several to send as one message, oldest first. */
export type ClaimedDelivery = {
  readonly deliveries: readonly DeliveryRow[];
  readonly channel: ChannelRow;
  readonly owner: string;
};

/**
 * Claims the delivery that is due the longest, except of `exceptChannels`. For a channel that gathers messages, it also
 * claims everything else that is due or new. Undefined if nothing is due.
 */
export async function claimDelivery(
  { db, world, owners }: TimedContext & OwnersContext,
  worker: string,
  exceptChannels: readonly number[],
): Promise<ClaimedDelivery | undefined> {
  const at = world.now();
  const throttled = await throttledChannels(db.reader, at);
  const resting = await channelsFailingSince(db.reader, at - maxRest, at);
  const limits = { exceptChannels: [...exceptChannels, ...throttled, ...resting], maxWait };
  if ((await listDueDeliveries(db.reader, at, limits, 1)).length === 0) return undefined;
  const owner = owners.named(worker);
  return db.write(async (writer) => {
    const now = world.now();
    const [found] = await listDueDeliveries(writer, now, limits, 1);
    const channel = found && (await findChannelById(writer, found.channel_id));
    if (found === undefined || channel === undefined) return undefined;
    if (!isGathering(channel.type) || isAlone(found)) return lease(writer, [found], channel, owner, now);
    const due = await listDueDeliveries(
      writer,
      now,
      { onlyChannel: channel.id, maxWait, newWithin: gatheredFor },
      maxGathered,
    );
    return lease(
      writer,
      due.filter((row) => !isAlone(row)),
      channel,
      owner,
      now,
    );
  });
}

function isAlone({ event }: DueDeliveryRow): boolean {
  return sentAlone.some((alone) => alone === event);
}

/** Leases deliveries to an owner name that is unique to this claim. */
export async function lease(
  writer: Writer,
  found: readonly DeliveryRow[],
  channel: ChannelRow,
  worker: string,
  now: number,
): Promise<ClaimedDelivery> {
  const owner = `${worker}/${found[0]?.id}/${(found[0]?.attempts ?? 0) + 1}/${now}`;
  const deliveries: DeliveryRow[] = [];
  for (const row of found) {
    const changes = {
      status: 'sending' as const,
      attempts: row.attempts + 1,
      last_attempt_at: now,
      lease_owner: owner,
      lease_expires_at: now + (channelTypes.get(channel.type)?.maxPatience ?? 0) + leaseSlack,
    };
    await updateDelivery(writer, row.id, changes);
    deliveries.push({ ...row, ...changes });
  }
  return { deliveries, channel, owner };
}
