/** Deliveries are claimed under a lease before they are attempted, alone, or together where people read them. */
import { day, minute } from '../../base/duration.ts';
import { channelTypes } from '../../channels/channel-types.ts';
import type { Writer } from '../../db/database.ts';
import { type ChannelRow, findChannelById } from '../../db/tables/notification-channels.ts';
import {
  type DeliveryRow,
  type DueDeliveryRow,
  listDueDeliveries,
  updateDelivery,
} from '../../db/tables/notification-deliveries.ts';
import type { TimedContext } from '../contexts.ts';
import { isGathering, mostGathered, restingChannels, sentAlone } from './notification-gathering.ts';

/** Nobody waits or leases for longer. */
const longestWait = 2 * day;

/** On top of the time that an attempt may take: an owner that is silent for so long is dead. */
const leaseSlack = minute;

/** One delivery, or several that go out as one message, oldest first. */
export type ClaimedDelivery = {
  readonly deliveries: readonly DeliveryRow[];
  readonly channel: ChannelRow;
  readonly owner: string;
};

/**
 * Claims the delivery that has been due for longest, of other channels than these, and with it what else is due over the
 * same channel where people read it. Undefined where there is none.
 */
export async function claimDelivery(
  { db, world }: TimedContext,
  worker: string,
  exceptChannels: readonly number[],
): Promise<ClaimedDelivery | undefined> {
  const resting = await restingChannels(db.reader, world.now());
  const limits = { exceptChannels: [...exceptChannels, ...resting], longestWait };
  if ((await listDueDeliveries(db.reader, world.now(), limits, 1)).length === 0) return undefined;
  return db.write(async (writer) => {
    const now = world.now();
    const [found] = await listDueDeliveries(writer, now, limits, 1);
    const channel = found && (await findChannelById(writer, found.channel_id));
    if (found === undefined || channel === undefined) return undefined;
    if (!isGathering(channel.type) || isAlone(found)) return lease(writer, [found], channel, worker, now);
    const due = await listDueDeliveries(writer, now, { onlyChannel: channel.id, longestWait }, mostGathered);
    return lease(
      writer,
      due.filter((row) => !isAlone(row)),
      channel,
      worker,
      now,
    );
  });
}

function isAlone({ event }: DueDeliveryRow): boolean {
  return sentAlone.some((alone) => alone === event);
}

/** Puts deliveries under the lease of an owner that no other claim has. */
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
      lease_expires_at: now + (channelTypes.get(channel.type)?.longestPatience ?? 0) + leaseSlack,
    };
    await updateDelivery(writer, row.id, changes);
    deliveries.push({ ...row, ...changes });
  }
  return { deliveries, channel, owner };
}
