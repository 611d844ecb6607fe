/** Daily digests: what happened since the last one, what is wrong, and what ends soon. Nothing to say is not said. */
import { day } from '../base/duration.ts';
import { formatTimestamp } from '../base/timestamp.ts';
import { listAuditEvents } from '../db/audit-search.ts';
import type { Reader } from '../db/database.ts';
import { findAlarm } from '../db/notification-alarms.ts';
import {
  type ChannelRow,
  findChannelById,
  listChannels,
  updateChannel,
} from '../db/notification-channels.ts';
import {
  apiKeysEndingBefore,
  certificatesEndingBefore,
  failingCertificates,
} from '../db/notification-watch.ts';
import { fitsFilter } from './notification-events.ts';
import { tellOnly } from './notification-queue.ts';
import type { Vault } from './vault.ts';

/** Of each list; a mail with thousands of lines is read by nobody. */
const mostListed = 100;

export type Digest = {
  readonly from: string;
  readonly until: string;
  readonly days: number;
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

/** Queues the digests whose moment has come. Returns how many. */
export async function queueDigests(vault: Vault): Promise<number> {
  const { db, world } = vault;
  const now = world.now();
  let queued = 0;
  for (const channel of await listChannels(db.reader)) {
    if (isDue(channel, now) && (await queueDigest(vault, channel.id))) queued += 1;
  }
  return queued;
}

/** A moment that is more than a day ahead was set by a clock that was. */
function isDue({ digest_at, next_digest_at, disabled_at }: ChannelRow, now: number): boolean {
  if (digest_at === null || next_digest_at === null || disabled_at !== null) return false;
  return next_digest_at <= now || next_digest_at > now + day;
}

async function queueDigest({ db, world }: Vault, id: number): Promise<boolean> {
  return db.write(async (writer) => {
    const now = world.now();
    const channel = await findChannelById(writer, id);
    // Another process may have done it meanwhile.
    if (channel === undefined || channel.digest_at === null || !isDue(channel, now)) return false;
    const isTime = (channel.next_digest_at ?? now) <= now;
    await updateChannel(writer, id, {
      next_digest_at: nextDigestAt(channel.digest_at, now),
      ...(isTime && { last_digest_at: now }),
    });
    if (!isTime) return false;
    const digest = await digestFor(writer, channel, now);
    if (isEmpty(digest)) return false;
    await tellOnly(world, writer, channel, {
      event: 'digest',
      about: null,
      certificates: null,
      data: digest,
    });
    return true;
  });
}

/** What the channel is to hear at `now`, of the certificates that its filter lets through. */
export async function digestFor(reader: Reader, channel: ChannelRow, now: number): Promise<Digest> {
  const last = channel.last_digest_at;
  const since = last === null || last > now ? now - day : last;
  const patterns = JSON.parse(channel.certificates) as string[];
  const fits = (name: string) => fitsFilter(patterns, [name]);
  const until = now + channel.digest_days * day;
  // Filters take some away: then there may be fewer than could be listed.
  const most = patterns.length === 0 ? mostListed : 50 * mostListed;
  const issued = new Set<string>();
  for (const action of ['certificate.issue', 'certificate.import']) {
    const events = await listAuditEvents(reader, { action, since }, { limit: most });
    for (const { resource } of events) issued.add(resource.replace(/^certificate:/, ''));
  }
  const failing = await failingCertificates(reader, most);
  const expiring = await certificatesEndingBefore(reader, now, until, most);
  const keys = await apiKeysEndingBefore(reader, now, until, mostListed);
  const overdue = await findAlarm(reader, 'backup.overdue', {});
  return {
    from: formatTimestamp(since),
    until: formatTimestamp(now),
    days: channel.digest_days,
    issued: [...issued].filter(fits).sort().slice(0, mostListed),
    failing: failing
      .filter(({ name }) => fits(name))
      .slice(0, mostListed)
      .map(({ name, last_error }) => ({ certificate: name, error: last_error })),
    expiring: expiring
      .filter(({ name }) => fits(name))
      .slice(0, mostListed)
      .map(({ name, ends_at }) => ({ certificate: name, expires_at: formatTimestamp(ends_at) })),
    api_keys: keys.map(({ id, name, ends_at }) => ({ id, name, expires_at: formatTimestamp(ends_at) })),
    backup_overdue_since: overdue === undefined ? null : formatTimestamp(overdue.opened_at),
  };
}

function isEmpty({ issued, failing, expiring, api_keys, backup_overdue_since }: Digest): boolean {
  const count = issued.length + failing.length + expiring.length + api_keys.length;
  return count === 0 && backup_overdue_since === null;
}
