/**
 * Deliveries: attempted with a deadline, retried at growing intervals, and abandoned after days. A message that is sent
 * twice has the same id both times; a message that is never delivered stays in the log as failed.
 */
import { withDeadline } from '../../base/deadline.ts';
import { day, hour, minute } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { ChannelError, type Message } from '../../channels/channel.ts';
import { channelTypes } from '../../channels/channel-types.ts';
import type { Writer } from '../../db/database.ts';
import { type ChannelRow, updateChannel } from '../../db/tables/notifications/notification-channels.ts';
import {
  type DeliveryChanges,
  type DeliveryRow,
  deleteDeliveries,
  expireDeliveries,
  oldDeliveries,
  updateLeasedDelivery,
} from '../../db/tables/notifications/notification-deliveries.ts';
import { wasQueuedLater } from '../../db/tables/notifications/notification-pace.ts';
import { listNotifications, type NotificationRow } from '../../db/tables/notifications/notifications.ts';
import type { OutboundGuard } from '../../net/outbound-guard.ts';
import type { Outbound } from '../../net/outbound-http.ts';
import { record, system } from '../audit/audit.ts';
import type { LogContext, SecretsContext, TimedContext } from '../contexts.ts';
import { servingServers } from '../instance/served-settings.ts';
import type { OwnersContext } from '../nodes/lease-owners.ts';
import { channelSettingsOwner, openFor } from '../sealed-secrets.ts';
import type { ClaimedDelivery } from './notification-claim.ts';
import { supersedingEvents } from './notification-events.ts';
import { gatheredMessage } from './notification-gathering.ts';
import { messageText } from './notification-text.ts';

/** Delivers notifications over the network and records the results. */
export type DeliveryContext = SecretsContext &
  LogContext &
  OwnersContext & { readonly outbound: Outbound; readonly guard: OutboundGuard };

/** Delays after each failed attempt; the last one repeats until the delivery expires. */
const retryDelays = [minute, 5 * minute, 30 * minute, 2 * hour, 6 * hour, 12 * hour, day];

/** How long, and how many, finished deliveries stay in the log. */
const keptFor = 30 * day;
const maxRetained = 10_000;

/** Milliseconds until the next attempt after this many failed ones; a longer Retry-After of the receiver is obeyed. */
export function retryDelay(attempts: number, retryAfterMs = 0): number {
  const delay = retryDelays[Math.min(attempts, retryDelays.length) - 1] ?? minute;
  return Math.max(delay, Math.min(retryAfterMs, day));
}

/**
 * Attempts the claimed deliveries once and records the result; a failed one is queued again unless it has expired. When
 * `signal` is aborted, the deliveries return to the queue unchanged. Returns the error, also that of a partial
 * delivery.
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
      await db.write((writer) => updateClaimed(writer, claimed, (row) => released(row, world.now())));
      return undefined;
    }
    if (!(error instanceof ChannelError)) {
      log.error({ err: error, channel: channel.name }, 'failed to prepare a notification');
    }
    failure =
      error instanceof ChannelError ? error : new ChannelError('internal error; see the log of the vault');
  }
  const now = world.now();
  const error = failure;
  await db.write(async (writer) => {
    const isOurs = await updateClaimed(writer, claimed, (row) =>
      error === undefined ? delivered(now, remark) : failed(row, error, now),
    );
    if (isOurs && error?.isGone === true) await disable(writer, channel, error.message, now);
  });
  const [first] = deliveries;
  const fields = {
    ...{ channel: channel.name, delivery: first?.id, attempts: first?.attempts },
    ...(deliveries.length > 1 && { gathered: deliveries.length }),
  };
  if (failure !== undefined)
    log.warn({ ...fields, reason: failure.message }, 'failed to deliver a notification');
  else if (remark !== undefined) log.warn({ ...fields, reason: remark }, 'notification partly delivered');
  else log.debug(fields, 'notification delivered');
  return failure ?? (remark === undefined ? undefined : new ChannelError(remark));
}

/** Updates the deliveries that are still leased to this owner. Returns whether there were any. */
async function updateClaimed(
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

const unleased = { lease_owner: null, lease_expires_at: null } as const;

function delivered(now: number, remark: string | undefined): DeliveryChanges {
  return { status: 'delivered', ended_at: now, error: remark ?? null, ...unleased };
}

/** Queued again, or failed if it has expired, like a canceled test. */
function released(row: DeliveryRow, now: number): DeliveryChanges {
  if (row.expires_at <= now)
    return failed(row, new ChannelError('canceled before the receiver answered'), now);
  return { status: 'queued', attempts: row.attempts - 1, ...unleased };
}

function failed({ attempts, expires_at }: DeliveryRow, failure: ChannelError, now: number): DeliveryChanges {
  const next = now + retryDelay(attempts, failure.retryAfterMs);
  if (failure.isGone || next >= expires_at) {
    return { status: 'failed', ended_at: now, error: failure.message, ...unleased };
  }
  return { status: 'queued', next_attempt_at: next, error: failure.message, ...unleased };
}

async function disable(writer: Writer, { id, name }: ChannelRow, reason: string, now: number): Promise<void> {
  await updateChannel(writer, id, { disabled_at: now, disabled_reason: reason });
  const resource = `notification-channel:${name}`;
  record(
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
  if (row === undefined || type === undefined) throw new ChannelError('the notification no longer exists');
  const [delivery] = deliveries;
  const later = type.keepsAlarms === true ? supersedingEvents(row.event) : [];
  // A retry that arrives after the recovery would open an alarm that nothing closes, and vice versa.
  if (delivery !== undefined && (await wasQueuedLater(db.reader, delivery, later, row.about)))
    return 'not sent: a later notification says otherwise';
  const message = rows.length === 1 ? messageOf(row) : gatheredMessage(channel.name, rows);
  const sealed = openFor(vault, channelSettingsOwner(channel.id), channel.sealed_settings);
  const config: unknown = JSON.parse(sealed.expose().toString('utf8'));
  const urls = (await servingServers(db.reader)).map(({ settings }) => settings.public_url);
  const publicUrl = urls.find((url) => url !== null) ?? undefined;
  const channelKey = `vault-${channel.created_at.toString(36)}-${channel.id}`;
  const opened = type.create(config, { world, outbound, guard, publicUrl, channelKey });
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
  const data = parseJson(text);
  return { id, type, timestamp: formatTimestamp(at), ...messageText(type, data, at), data };
}

/** Fails expired deliveries and deletes old finished ones. Returns whether there may be more to delete. */
export async function pruneDeliveries({ db, world }: TimedContext): Promise<boolean> {
  const now = world.now();
  const atOnce = 500;
  const old = await oldDeliveries(db.reader, { endedBefore: now - keptFor, most: maxRetained }, atOnce);
  await db.write(async (writer) => {
    await expireDeliveries(writer, now, 'expired before it could be delivered');
    await deleteDeliveries(writer, old);
  });
  return old.length === atOnce;
}
