/**
 * Many notices at once, for people: when a CA is down, a mail for each of five hundred certificates would bury the one
 * that matters. The first few go out at once; what follows waits a little, and comes as one mail.
 */
import { createHash } from 'node:crypto';
import { minute } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Message } from '../../channels/channel.ts';
import { channelTypes } from '../../channels/channel-types.ts';
import type { Reader } from '../../db/database.ts';
import { channelsNotifiedSince } from '../../db/tables/notification-deliveries.ts';
import type { NotificationRow } from '../../db/tables/notifications.ts';
import type { NoticeEvent } from './notification-events.ts';
import { section, signed, wordsFor } from './notification-text.ts';

/** After so many notices within so long, a channel rests until they are that long ago. */
const mostAtOnce = 5;
const restFor = 15 * minute;

/** Into one mail. */
export const mostGathered = 1000;
const mostListed = 100;

/** Long, or waited for: they come alone. */
export const sentAlone: readonly NoticeEvent[] = ['digest', 'test'];

const gatheringTypes = [...channelTypes.values()].filter(({ gathers }) => gathers).map(({ type }) => type);

/** Whether what waits for a channel of this type comes as one message. */
export function isGathering(type: string): boolean {
  return gatheringTypes.some((known) => known === type);
}

/** Channels that have told so much lately that the next waits. */
export async function restingChannels(reader: Reader, now: number): Promise<number[]> {
  const lately = { since: now - restFor, until: now, notOf: sentAlone };
  return channelsNotifiedSince(reader, gatheringTypes, lately, mostAtOnce);
}

/** One message of several notices, oldest first, for this channel. The same notices have the same id each time. */
export function gatheredMessage(channel: string, rows: readonly NotificationRow[]): Message {
  const notices = rows.map(({ event, data, at }) => {
    const facts = JSON.parse(data) as Readonly<Record<string, unknown>>;
    const { subject } = wordsFor(event, facts, at);
    return { event, line: typeof facts.error === 'string' ? `${subject}: ${facts.error}` : subject };
  });
  const kinds = [...Map.groupBy(notices, ({ event }) => event)];
  const times = rows.map(({ at }) => at);
  const last = formatTimestamp(Math.max(...times));
  const counts = kinds.map(([event, its]) => `${inWords(event)} (${its.length})`);
  return {
    id: `msg_${createHash('sha256')
      .update(rows.map((row) => row.message_id).join())
      .digest('base64url')
      .slice(0, 24)}`,
    type: 'gathered',
    timestamp: last,
    ...signed(`${rows.length} notices: ${counts.join(', ')}`, [
      `From ${formatTimestamp(Math.min(...times))} to ${last}.`,
      ...kinds.flatMap(([event, its]) => {
        const lines = its.slice(0, mostListed).map(({ line }) => line);
        return section(`${inWords(event)} (${its.length})`, lines, its.length);
      }),
      '',
      'All of them, and how each was told:',
      '',
      `  vault notification log --channel ${channel} --limit 1000`,
    ]),
    data: { notices: rows.map(({ message_id, event, about }) => ({ id: message_id, type: event, about })) },
  };
}

function inWords(event: string): string {
  return event.replaceAll(/[._]/g, ' ');
}
