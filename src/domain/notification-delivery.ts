/**
 * Deliveries: claimed under a lease, attempted within a deadline, tried again at growing distances, and given up after
 * days. What is told twice has the same id both times; what is told never is in the log.
 */

import { withDeadline } from '../base/deadline.ts';
import { day, hour, minute } from '../base/duration.ts';
import { formatTimestamp } from '../base/timestamp.ts';
import { ChannelError } from '../channels/channel.ts';
import { channelTypes } from '../channels/channel-types.ts';
import type { Writer } from '../db/database.ts';
import { type ChannelRow, findChannelById, updateChannel } from '../db/notification-channels.ts';
import {
  type DeliveryChanges,
  type DeliveryRow,
  deleteDeliveries,
  expireDeliveries,
  findDueDelivery,
  findNotification,
  oldDeliveries,
  updateDelivery,
  updateLeasedDelivery,
} from '../db/notification-deliveries.ts';
import { record, system } from './audit.ts';
import { wordsFor } from './notification-text.ts';
import { channelSettingsOwner, openFor } from './sealed-secrets.ts';
import type { Vault } from './vault.ts';

/** After each attempt that failed; the last goes on until the delivery is given up. */
const distances = [minute, 5 * minute, 30 * minute, 2 * hour, 6 * hour, 12 * hour, day];

/** Nobody waits or leases for longer. */
const longestWait = 2 * day;

/** On top of the time that an attempt may take: an owner that is silent for so long is dead. */
const leaseSlack = minute;

/** Of what was delivered or given up. */
const keptFor = 30 * day;
const mostKept = 10_000;

export type ClaimedDelivery = {
  readonly delivery: DeliveryRow;
  readonly channel: ChannelRow;
  readonly owner: string;
};

/** Milliseconds until the next attempt after so many that failed; a receiver's own wish counts where it is longer. */
export function distanceAfter(attempts: number, wished = 0): number {
  return Math.max(distances[Math.min(attempts, distances.length) - 1] ?? minute, Math.min(wished, day));
}

/** Claims the delivery that has been due for longest, of other channels than these; undefined where there is none. */
export async function claimDelivery(
  { db, world }: Vault,
  worker: string,
  exceptChannels: readonly number[],
): Promise<ClaimedDelivery | undefined> {
  const limits = { exceptChannels, longestWait };
  if ((await findDueDelivery(db.reader, world.now(), limits)) === undefined) return undefined;
  return db.write(async (writer) => {
    const now = world.now();
    const found = await findDueDelivery(writer, now, limits);
    const channel = found && (await findChannelById(writer, found.channel_id));
    if (found === undefined || channel === undefined) return undefined;
    return lease(writer, found, channel, worker, now);
  });
}

/** Puts a delivery under the lease of an owner that no other claim has. */
export async function lease(
  writer: Writer,
  found: DeliveryRow,
  channel: ChannelRow,
  worker: string,
  now: number,
): Promise<ClaimedDelivery> {
  const owner = `${worker}/${found.id}/${found.attempts + 1}/${now}`;
  const changes = {
    status: 'sending' as const,
    attempts: found.attempts + 1,
    last_attempt_at: now,
    lease_owner: owner,
    lease_expires_at: now + (channelTypes.get(channel.type)?.longestPatience ?? 0) + leaseSlack,
  };
  await updateDelivery(writer, found.id, changes);
  return { delivery: { ...found, ...changes }, channel, owner };
}

/**
 * Attempts a delivery once and puts down how it went; what failed is queued again unless its time is over. When `signal`
 * is aborted, it is given back as it was. Returns what went wrong, where something did, also where it was taken nevertheless.
 */
export async function deliver(
  vault: Vault,
  claimed: ClaimedDelivery,
  signal: AbortSignal,
): Promise<ChannelError | undefined> {
  const { world, db, log } = vault;
  const { delivery, channel, owner } = claimed;
  let failure: ChannelError | undefined;
  let remark: string | undefined;
  try {
    remark = await send(vault, claimed, signal);
  } catch (error) {
    if (signal.aborted) {
      // Nobody takes up again what has no time left, such as a test that nobody waits for any more.
      const back =
        delivery.expires_at <= world.now()
          ? failed(claimed, new ChannelError('given up before there was an answer'), world.now())
          : { status: 'queued' as const, attempts: delivery.attempts - 1, ...released };
      await db.write((writer) => updateLeasedDelivery(writer, delivery.id, owner, back));
      return undefined;
    }
    if (!(error instanceof ChannelError)) {
      log.error({ err: error, channel: channel.name }, 'a notification could not be made ready to be sent');
    }
    failure = error instanceof ChannelError ? error : new ChannelError('the vault failed; its log says why');
  }
  const now = world.now();
  const error = failure;
  await db.write(async (writer) => {
    const changes = error === undefined ? delivered(now, remark) : failed(claimed, error, now);
    if (!(await updateLeasedDelivery(writer, delivery.id, owner, changes))) return;
    if (error?.isGone === true) await disable(writer, channel, error.message, now);
  });
  const told = { channel: channel.name, delivery: delivery.id, attempts: delivery.attempts };
  if (failure !== undefined)
    log.warn({ ...told, reason: failure.message }, 'a notification could not be delivered');
  else if (remark !== undefined)
    log.warn({ ...told, reason: remark }, 'a notification was not taken as a whole');
  else log.debug(told, 'a notification was delivered');
  return failure ?? (remark === undefined ? undefined : new ChannelError(remark));
}

const released = { lease_owner: null, lease_expires_at: null } as const;

function delivered(now: number, remark: string | undefined): DeliveryChanges {
  return { status: 'delivered', ended_at: now, error: remark ?? null, ...released };
}

function failed({ delivery }: ClaimedDelivery, failure: ChannelError, now: number): DeliveryChanges {
  const next = now + distanceAfter(delivery.attempts, failure.retryAfterMs);
  if (failure.isGone || next >= delivery.expires_at) {
    return { status: 'failed', ended_at: now, error: failure.message, ...released };
  }
  return { status: 'queued', next_attempt_at: next, error: failure.message, ...released };
}

async function disable(writer: Writer, { id, name }: ChannelRow, reason: string, now: number): Promise<void> {
  await updateChannel(writer, id, { disabled_at: now, disabled_reason: reason });
  const resource = `notification-channel:${name}`;
  await record(
    writer,
    { actor: system, action: 'notification_channel.disable', resource, detail: { reason } },
    now,
  );
}

async function send(
  vault: Vault,
  { delivery, channel }: ClaimedDelivery,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { world, outbound, db } = vault;
  const row = await findNotification(db.reader, delivery.notification_id);
  const type = channelTypes.get(channel.type);
  if (row === undefined || type === undefined) throw new ChannelError('there is nothing to send any more');
  const data = JSON.parse(row.data) as Readonly<Record<string, unknown>>;
  const message = {
    id: row.message_id,
    type: row.event,
    timestamp: formatTimestamp(row.at),
    ...wordsFor(row.event, data, row.at),
    data,
  };
  const sealed = openFor(vault, channelSettingsOwner(channel.id), channel.sealed_settings);
  const config: unknown = JSON.parse(sealed.expose().toString('utf8'));
  const opened = type.create(config, { world, outbound });
  return withDeadline(world, type.patience(config), signal, async (deadline) => {
    try {
      return await opened.send(message, deadline.signal);
    } catch (error) {
      if (deadline.ended() !== 'timeout') throw error;
      throw new ChannelError(`no answer within ${type.patience(config) / 1000} s`, { cause: error });
    }
  });
}

/** Gives up what is too old, and forgets what ended long ago. Returns whether there may be more to forget. */
export async function tidyDeliveries({ db, world }: Vault): Promise<boolean> {
  const now = world.now();
  const atOnce = 500;
  const old = await oldDeliveries(db.reader, { endedBefore: now - keptFor, most: mostKept }, atOnce);
  await db.write(async (writer) => {
    await expireDeliveries(writer, now, 'given up: it could not be delivered in time');
    await deleteDeliveries(writer, old);
  });
  return old.length === atOnce;
}
