/**
 * Deliveries: attempted within a deadline, tried again at growing distances, and given up after days. What is told twice
 * has the same id both times; what is told never is in the log.
 */
import { withDeadline } from '../../base/deadline.ts';
import { day, hour, minute } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { ChannelError, type Message } from '../../channels/channel.ts';
import { channelTypes } from '../../channels/channel-types.ts';
import type { Writer } from '../../db/database.ts';
import { type ChannelRow, updateChannel } from '../../db/tables/notification-channels.ts';
import {
  type DeliveryChanges,
  type DeliveryRow,
  deleteDeliveries,
  expireDeliveries,
  oldDeliveries,
  updateLeasedDelivery,
} from '../../db/tables/notification-deliveries.ts';
import { listNotifications, type NotificationRow } from '../../db/tables/notifications.ts';
import type { OutboundGuard } from '../../net/outbound-guard.ts';
import type { Outbound } from '../../net/outbound-http.ts';
import { record, system } from '../audit/audit.ts';
import type { LogContext, SecretsContext, TimedContext } from '../contexts.ts';
import { channelSettingsOwner, openFor } from '../sealed-secrets.ts';
import type { ClaimedDelivery } from './notification-claim.ts';
import { gatheredMessage } from './notification-gathering.ts';
import { wordsFor } from './notification-text.ts';

/** Delivers notifications over the network, and notes what came of it. */
export type DeliveryContext = SecretsContext &
  LogContext & { readonly outbound: Outbound; readonly guard: OutboundGuard };

/** After each attempt that failed; the last goes on until the delivery is given up. */
const distances = [minute, 5 * minute, 30 * minute, 2 * hour, 6 * hour, 12 * hour, day];

/** Of what was delivered or given up. */
const keptFor = 30 * day;
const mostKept = 10_000;

/** Milliseconds until the next attempt after so many that failed; a receiver's own wish counts where it is longer. */
export function distanceAfter(attempts: number, wished = 0): number {
  return Math.max(distances[Math.min(attempts, distances.length) - 1] ?? minute, Math.min(wished, day));
}

/**
 * Attempts what was claimed once and puts down how it went; what failed is queued again unless its time is over. When `signal`
 * is aborted, it is given back as it was. Returns what went wrong, where something did, also where it was taken nevertheless.
 */
export async function deliver(
  vault: DeliveryContext,
  claimed: ClaimedDelivery,
  signal: AbortSignal,
): Promise<ChannelError | undefined> {
  const { world, db, log } = vault;
  const { deliveries, channel } = claimed;
  let failure: ChannelError | undefined;
  let remark: string | undefined;
  try {
    remark = await send(vault, claimed, signal);
  } catch (error) {
    if (signal.aborted) {
      await db.write((writer) => putDown(writer, claimed, (row) => givenBack(row, world.now())));
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
    const isOurs = await putDown(writer, claimed, (row) =>
      error === undefined ? delivered(now, remark) : failed(row, error, now),
    );
    if (isOurs && error?.isGone === true) await disable(writer, channel, error.message, now);
  });
  const [first] = deliveries;
  const told = {
    ...{ channel: channel.name, delivery: first?.id, attempts: first?.attempts },
    ...(deliveries.length > 1 && { gathered: deliveries.length }),
  };
  if (failure !== undefined)
    log.warn({ ...told, reason: failure.message }, 'a notification could not be delivered');
  else if (remark !== undefined)
    log.warn({ ...told, reason: remark }, 'a notification was not taken as a whole');
  else log.debug(told, 'a notification was delivered');
  return failure ?? (remark === undefined ? undefined : new ChannelError(remark));
}

/** Changes what was claimed, as far as it is still in this hand. Returns whether any of it was. */
async function putDown(
  writer: Writer,
  { deliveries, owner }: ClaimedDelivery,
  changes: (row: DeliveryRow) => DeliveryChanges,
): Promise<boolean> {
  let isOurs = false;
  for (const row of deliveries) {
    if (await updateLeasedDelivery(writer, row.id, owner, changes(row))) isOurs = true;
  }
  return isOurs;
}

const released = { lease_owner: null, lease_expires_at: null } as const;

function delivered(now: number, remark: string | undefined): DeliveryChanges {
  return { status: 'delivered', ended_at: now, error: remark ?? null, ...released };
}

/** Nobody takes up again what has no time left, such as a test that nobody waits for any more. */
function givenBack(row: DeliveryRow, now: number): DeliveryChanges {
  if (row.expires_at <= now) return failed(row, new ChannelError('given up before there was an answer'), now);
  return { status: 'queued', attempts: row.attempts - 1, ...released };
}

function failed({ attempts, expires_at }: DeliveryRow, failure: ChannelError, now: number): DeliveryChanges {
  const next = now + distanceAfter(attempts, failure.retryAfterMs);
  if (failure.isGone || next >= expires_at) {
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
  vault: DeliveryContext,
  { deliveries, channel }: ClaimedDelivery,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { world, outbound, guard, db } = vault;
  const ids = deliveries.map((row) => row.notification_id);
  const rows = await listNotifications(db.reader, ids);
  const [row] = rows;
  const type = channelTypes.get(channel.type);
  if (row === undefined || type === undefined) throw new ChannelError('there is nothing to send any more');
  const message = rows.length === 1 ? messageOf(row) : gatheredMessage(channel.name, rows);
  const sealed = openFor(vault, channelSettingsOwner(channel.id), channel.sealed_settings);
  const config: unknown = JSON.parse(sealed.expose().toString('utf8'));
  const opened = type.create(config, { world, outbound, guard });
  return withDeadline(world, type.patience(config), signal, async (deadline) => {
    try {
      return await opened.send(message, deadline.signal);
    } catch (error) {
      if (deadline.ended() !== 'timeout') throw error;
      throw new ChannelError(`no answer within ${type.patience(config) / 1000} s`, { cause: error });
    }
  });
}

function messageOf({ message_id: id, event: type, at, data: text }: NotificationRow): Message {
  const data = JSON.parse(text) as Readonly<Record<string, unknown>>;
  return { id, type, timestamp: formatTimestamp(at), ...wordsFor(type, data, at), data };
}

/** Gives up what is too old, and forgets what ended long ago. Returns whether there may be more to forget. */
export async function tidyDeliveries({ db, world }: TimedContext): Promise<boolean> {
  const now = world.now();
  const atOnce = 500;
  const old = await oldDeliveries(db.reader, { endedBefore: now - keptFor, most: mostKept }, atOnce);
  await db.write(async (writer) => {
    await expireDeliveries(writer, now, 'given up: it could not be delivered in time');
    await deleteDeliveries(writer, old);
  });
  return old.length === atOnce;
}
