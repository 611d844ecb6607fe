/** Daily digests: what was issued since the last one, what fails and what expires soon. An empty digest is not sent. */
import { day } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Reader } from '../../db/database.ts';
import { findAlarm } from '../../db/tables/notification-alarms.ts';
import {
  type ChannelRow,
  findChannelById,
  listChannels,
  updateChannel,
} from '../../db/tables/notification-channels.ts';
import {
  apiKeysExpiringBefore,
  certificatesExpiringBefore,
  certificatesIssuedSince,
  failingCertificates,
} from '../../db/tables/notification-watch.ts';
import type { TimedContext } from '../contexts.ts';
import { matchesFilter } from './notification-events.ts';
import { notifyChannel } from './notification-queue.ts';

/** Entries per list; longer ones are cut. */
const mostListed = 100;

export type Digest = {
  readonly from: string;
  readonly until: string;
  readonly days: number;
  /** The full length of each list, before it was cut. */
  readonly counts: Readonly<Record<'issued' | 'failing' | 'expiring' | 'api_keys', number>>;
  readonly issued: readonly string[];
  readonly failing: readonly { readonly certificate: string; readonly error: string | null }[];
  readonly expiring: readonly { readonly certificate: string; readonly expires_at: string }[];
  readonly api_keys: readonly { readonly id: number; readonly name: string; readonly expires_at: string }[];
  readonly backup_overdue_since: string | null;
};

/** The first moment after `now` (UTC milliseconds) at which a clock in UTC shows `HH:MM`. */
export function nextDigestAt(time: string, now: number): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  const today = now - (now % day) + (hours * 60 + minutes) * 60_000;
  return today > now ? today : today + day;
}

/** Queues the digests that are due. Returns how many. */
export async function queueDigests(vault: TimedContext): Promise<number> {
  const { db, world } = vault;
  const now = world.now();
  let queued = 0;
  for (const channel of await listChannels(db.reader)) {
    if (isDue(channel, now) && (await queueDigest(vault, channel.id))) queued += 1;
  }
  return queued;
}

/** A time more than a day ahead was set by a wrong clock, so it counts as due for rescheduling. */
function isDue({ digest_at, next_digest_at, disabled_at }: ChannelRow, now: number): boolean {
  if (digest_at === null || next_digest_at === null || disabled_at !== null) return false;
  return next_digest_at <= now || next_digest_at > now + day;
}

async function queueDigest({ db, world }: TimedContext, id: number): Promise<boolean> {
  return db.write(async (writer) => {
    const now = world.now();
    const channel = await findChannelById(writer, id);
    // Another process may have queued it meanwhile.
    if (channel === undefined || channel.digest_at === null || !isDue(channel, now)) return false;
    const isTime = (channel.next_digest_at ?? now) <= now;
    await updateChannel(writer, id, {
      next_digest_at: nextDigestAt(channel.digest_at, now),
      ...(isTime && { last_digest_at: now }),
    });
    if (!isTime) return false;
    const digest = await digestFor(writer, channel, now);
    if (isEmpty(digest)) return false;
    await notifyChannel(world, writer, channel, {
      event: 'digest',
      about: null,
      certificates: null,
      data: digest,
    });
    return true;
  });
}

/** The digest of a channel at `now`, limited to the certificates that match its filter. */
async function digestFor(reader: Reader, channel: ChannelRow, now: number): Promise<Digest> {
  const last = channel.last_digest_at;
  const since = last === null || last > now ? now - day : last;
  const patterns = JSON.parse(channel.certificates) as string[];
  const until = now + channel.digest_days * day;
  const matching = <Row extends { readonly name: string }>(rows: readonly Row[]) =>
    rows.filter(({ name }) => matchesFilter(patterns, [name]));
  const issued = matching(await certificatesIssuedSince(reader, since));
  const failing = matching(await failingCertificates(reader));
  const expiring = matching(await certificatesExpiringBefore(reader, now, until));
  const keys = await apiKeysExpiringBefore(reader, now, until);
  const overdue = await findAlarm(reader, 'backup.overdue', {});
  return {
    from: formatTimestamp(since),
    until: formatTimestamp(now),
    days: channel.digest_days,
    counts: {
      ...{ issued: issued.length, failing: failing.length },
      ...{ expiring: expiring.length, api_keys: keys.length },
    },
    issued: issued.slice(0, mostListed).map(({ name }) => name),
    failing: failing
      .slice(0, mostListed)
      .map(({ name, last_error }) => ({ certificate: name, error: last_error })),
    expiring: expiring
      .slice(0, mostListed)
      .map(({ name, ends_at }) => ({ certificate: name, expires_at: formatTimestamp(ends_at) })),
    api_keys: keys
      .slice(0, mostListed)
      .map(({ id, name, ends_at }) => ({ id, name, expires_at: formatTimestamp(ends_at) })),
    backup_overdue_since: overdue === undefined ? null : formatTimestamp(overdue.opened_at),
  };
}

function isEmpty({ counts, backup_overdue_since }: Digest): boolean {
  return Object.values(counts).every((count) => count === 0) && backup_overdue_since === null;
}
