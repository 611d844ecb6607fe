/**
 * Gathers many notices into one message: when a CA is down, five hundred emails would bury the one that matters. The
 * first few wait for others for a few seconds; the following ones wait a while and are sent together.
 */
import { createHash } from 'node:crypto';
import { minute } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Message } from '../../channels/channel.ts';
import { channelTypes } from '../../channels/channel-types.ts';
import type { Reader } from '../../db/database.ts';
import { channelsNotifiedSince } from '../../db/tables/notifications/notification-pace.ts';
import type { NotificationRow } from '../../db/tables/notifications/notifications.ts';
import type { NoticeEvent } from './notification-events.ts';
import { section } from './notification-set-aside.ts';
import { messageText, signed } from './notification-text.ts';

/** A channel that sent this many notices within this time waits until they are older. */
const maxAtOnce = 5;
const throttledFor = 15 * minute;

/** Notices per message, and how many of each kind it lists. */
export const maxGathered = 1000;
const maxListed = 100;

/** Events sent in a message of their own: a digest is long, and an administrator waits for a test. */
export const sentAlone: readonly NoticeEvent[] = ['digest', 'test'];

const gatheringTypes = [...channelTypes.values()].filter(({ gathers }) => gathers).map(({ type }) => type);

/** Channels that sent so many notices recently that the next one waits. */
export async function throttledChannels(reader: Reader, now: number): Promise<number[]> {
  const lately = { since: now - throttledFor, until: now, notOf: sentAlone };
  return channelsNotifiedSince(reader, gatheringTypes, lately, maxAtOnce);
}

/** One message for several notices, oldest first. The same notices always get the same message id. */
export function gatheredMessage(channel: string, rows: readonly NotificationRow[]): Message {
  const notices = rows.map(({ event, data, at }) => {
    const facts = parseJson(data);
    const { subject } = messageText(event, facts, at);
    return { event, line: typeof facts.error === 'string' ? `${subject}: ${facts.error}` : subject };
  });
  const kinds = [...Map.groupBy(notices, ({ event }) => event)];
  const times = rows.map(({ at }) => at);
  const last = formatTimestamp(Math.max(...times));
  const counts = kinds.map(([event, its]) => `${eventText(event)} (${its.length})`);
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
        const lines = its.slice(0, maxListed).map(({ line }) => line);
        return section(`${eventText(event)} (${its.length})`, lines, its.length);
      }),
      '',
      'List all of them with their delivery status:',
      '',
      `  vault notification log --channel ${channel} --limit 1000`,
    ]),
    data: { notices: rows.map(({ message_id, event, about }) => ({ id: message_id, type: event, about })) },
  };
}

function eventText(event: string): string {
  return event.replaceAll(/[._]/g, ' ');
}
