/** Queues notices for channels, in the transaction of the event itself. */
import { day, second } from '../../base/duration.ts';
import { parseJson, toJson } from '../../base/json.ts';
import { hasAnyLabel } from '../../base/object-label.ts';
import type { World } from '../../base/world.ts';
import { channelTypes, isGathering } from '../../channels/channel-types.ts';
import type { Writer } from '../../db/database.ts';
import { areAnyLabelled, labelledAmong } from '../../db/tables/certificates/certificate-labels.ts';
import { type ChannelRow, listChannels } from '../../db/tables/notifications/notification-channels.ts';
import { insertDelivery } from '../../db/tables/notifications/notification-deliveries.ts';
import { insertNotification } from '../../db/tables/notifications/notifications.ts';
import { matchesFilter, type Notice, type NoticeEvent, subscribedEvent } from './notification-events.ts';

/** A notice that is still undelivered after this time is abandoned. */
const deliverableFor = 3 * day;

/** How long a notice for people waits for others, so that one message reports what fails at the same time. */
export const gatheredFor = 30 * second;

/** Queues the notice for each enabled channel that subscribes to its event and whose filter matches. */
export async function notify(world: World, writer: Writer, notice: Notice): Promise<void> {
  const channels: ChannelRow[] = [];
  for (const channel of await listChannels(writer)) {
    if (isSubscribed(channel, notice) && (await hasLabels(writer, channel, notice))) channels.push(channel);
  }
  if (channels.length === 0) return;
  const id = await addNotification(world, writer, notice);
  for (const { id: channelId, type } of channels)
    await addDelivery(world, writer, id, channelId, isGathering(type) ? gatheredFor : 0);
}

/** Queues the notice for one channel, regardless of its subscriptions. Returns the id of the delivery. */
export async function notifyChannel(
  world: World,
  writer: Writer,
  channel: Pick<ChannelRow, 'id'>,
  notice: Notice,
): Promise<number> {
  return addDelivery(world, writer, await addNotification(world, writer, notice), channel.id);
}

/**
 * Queues one notice about several items for each enabled channel that subscribes to its event: about those items whose
 * certificates pass the filters of the channel, and those without a certificate. A channel that keeps alarms gets a
 * notice for each item, so that its recovery closes it.
 */
export async function notifyAbout<Item extends { readonly certificate: string | null }>(
  world: World,
  writer: Writer,
  event: NoticeEvent,
  items: readonly Item[],
  compose: (items: readonly Item[]) => Pick<Notice, 'about' | 'data'>,
): Promise<void> {
  const names = [...new Set(items.flatMap(({ certificate }) => certificate ?? []))];
  for (const channel of await listChannels(writer)) {
    if (!isForChannel(channel, event)) continue;
    const patterns = parseJson(channel.certificates);
    const wanted = channel.certificate_labels === null ? undefined : parseJson(channel.certificate_labels);
    const labelled = wanted && (await labelledAmong(writer, names, wanted));
    const its = items.filter(
      ({ certificate }) =>
        certificate === null ||
        (matchesFilter(patterns, [certificate]) && labelled?.has(certificate) !== false),
    );
    const isSplit = channelTypes.get(channel.type)?.keepsAlarms === true;
    const parts = isSplit ? its.map((item) => [item]) : its.length === 0 ? [] : [its];
    for (const part of parts) {
      const id = await addNotification(world, writer, { event, certificates: null, ...compose(part) });
      await addDelivery(world, writer, id, channel.id, isGathering(channel.type) ? gatheredFor : 0);
    }
  }
}

/** Whether the channel is enabled and subscribes to the event. */
export function isForChannel(channel: ChannelRow, event: NoticeEvent): boolean {
  return channel.disabled_at === null && parseJson(channel.events).includes(subscribedEvent(event));
}

/** Whether `notify` would reach one of these channels, as far as their patterns decide. */
export function isForSome(
  channels: readonly ChannelRow[],
  notice: Pick<Notice, 'event' | 'certificates'>,
): boolean {
  return channels.some((channel) => isSubscribed(channel, notice));
}

function isSubscribed(
  channel: ChannelRow,
  { event, certificates }: Pick<Notice, 'event' | 'certificates'>,
): boolean {
  return isForChannel(channel, event) && matchesFilter(parseJson(channel.certificates), certificates);
}

/** Whether the notice is about certificates with a label of the channel, or about none. */
async function hasLabels(
  writer: Writer,
  channel: ChannelRow,
  { certificates, labels = [] }: Pick<Notice, 'certificates' | 'labels'>,
): Promise<boolean> {
  if (channel.certificate_labels === null || certificates === null || certificates.includes('*')) return true;
  const wanted = parseJson(channel.certificate_labels);
  return hasAnyLabel(labels, wanted) || areAnyLabelled(writer, certificates, wanted);
}

function addNotification(world: World, writer: Writer, { event, about, data }: Notice): Promise<number> {
  const message_id = `msg_${world.randomBytes(18).toString('base64url')}`;
  return insertNotification(writer, {
    message_id,
    event,
    at: world.now(),
    about,
    data: toJson(data),
  });
}

function addDelivery(
  world: World,
  writer: Writer,
  notification_id: number,
  channel_id: number,
  wait = 0,
): Promise<number> {
  const now = world.now();
  return insertDelivery(writer, {
    notification_id,
    channel_id,
    status: 'queued',
    queued_at: now,
    next_attempt_at: now + wait,
    expires_at: now + deliverableFor,
  });
}
