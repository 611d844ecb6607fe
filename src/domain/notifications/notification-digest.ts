/** Daily digests: what was issued since the last one, what fails and what expires soon. An empty digest is not sent. */
import { day } from '../../base/duration.ts';
import { parseJson, parseJsonOr } from '../../base/json.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { namesLabelled } from '../../db/tables/certificates/certificate-labels.ts';
import { findAlarm } from '../../db/tables/notifications/notification-alarms.ts';
import {
  type ChannelRow,
  findChannelById,
  listChannels,
  updateChannel,
} from '../../db/tables/notifications/notification-channels.ts';
import {
  apiKeysExpiringBefore,
  certificatesExpiringBefore,
  certificatesIssuedSince,
  failingCertificates,
  type Upcoming,
} from '../../db/tables/notifications/notification-watch.ts';
import type { TimedContext } from '../contexts.ts';
import { rangesOf } from '../portions.ts';
import { matchesFilter } from './notification-events.ts';
import { notifyChannel } from './notification-queue.ts';

/** Entries per list; the rest is omitted. */
const maxListed = 100;

export type Digest = {
  readonly from: string;
  readonly until: string;
  readonly days: number;
  /** The full length of each list, before truncation. */
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
    if (isDue(channel, now) && (await queueDigest(vault, channel, now))) queued += 1;
  }
  return queued;
}

/** A time more than a day ahead was set by a wrong clock, so it counts as due for rescheduling. */
function isDue({ digest_at, next_digest_at, disabled_at }: ChannelRow, now: number): boolean {
  if (digest_at === null || next_digest_at === null || disabled_at !== null) return false;
  return next_digest_at <= now || next_digest_at > now + day;
}

async function queueDigest(
  vault: TimedContext,
  { id, ...channel }: ChannelRow,
  now: number,
): Promise<boolean> {
  const isTime = (channel.next_digest_at ?? now) <= now;
  // Before the transaction, because it reads all certificates.
  const digest = isTime ? await digestFor(vault, channel, now) : undefined;
  return vault.db.write(async (writer) => {
    const current = await findChannelById(writer, id);
    // Another process may have queued it meanwhile.
    if (current === undefined || current.digest_at === null || !isDue(current, now)) return false;
    await updateChannel(writer, id, {
      next_digest_at: nextDigestAt(current.digest_at, now),
      ...(isTime && { last_digest_at: now }),
    });
    if (digest === undefined || isEmpty(digest)) return false;
    await notifyChannel(vault.world, writer, current, {
      event: 'digest',
      about: null,
      certificates: null,
      data: digest,
    });
    return true;
  });
}

/** Certificates or API keys read at a time. */
const readAtOnce = 1000;

/** The digest of a channel at `now`, limited to the certificates that match its filter. */
async function digestFor(vault: TimedContext, channel: Omit<ChannelRow, 'id'>, now: number): Promise<Digest> {
  const { reader } = vault.db;
  const last = channel.last_digest_at;
  const since = last === null || last > now ? now - day : last;
  const patterns = parseJson(channel.certificates);
  const until = now + channel.digest_days * day;
  const labels = parseJsonOr(channel.certificate_labels, []);
  const issued = new DigestList(byName<Named>);
  const failing = new DigestList(byName<Named & { readonly last_error: string | null }>);
  const expiring = new DigestList(byEnd<Upcoming>);
  const keys = new DigestList(byEnd<Upcoming & { readonly id: number }>);
  for await (const range of rangesOf(vault, 'certificates', readAtOnce)) {
    const labelled = labels.length === 0 ? undefined : await namesLabelled(reader, labels, range);
    const matching = <Row extends Named>(rows: readonly Row[]) =>
      rows.filter(({ name }) => matchesFilter(patterns, [name]) && labelled?.has(name) !== false);
    issued.add(matching(await certificatesIssuedSince(reader, since, range)));
    failing.add(matching(await failingCertificates(reader, range)));
    expiring.add(matching(await certificatesExpiringBefore(reader, now, until, range)));
  }
  for await (const range of rangesOf(vault, 'api_keys', readAtOnce)) {
    keys.add(await apiKeysExpiringBefore(reader, now, until, range));
  }
  const overdue = await findAlarm(reader, 'backup.overdue', {});
  return {
    from: formatTimestamp(since),
    until: formatTimestamp(now),
    days: channel.digest_days,
    counts: {
      ...{ issued: issued.count, failing: failing.count },
      ...{ expiring: expiring.count, api_keys: keys.count },
    },
    issued: issued.first.map(({ name }) => name),
    failing: failing.first.map(({ name, last_error }) => ({ certificate: name, error: last_error })),
    expiring: expiring.first.map(({ name, ends_at }) => ({
      certificate: name,
      expires_at: formatTimestamp(ends_at),
    })),
    api_keys: keys.first.map(({ id, name, ends_at }) => ({ id, name, expires_at: formatTimestamp(ends_at) })),
    backup_overdue_since: overdue === undefined ? null : formatTimestamp(overdue.opened_at),
  };
}

type Named = { readonly name: string };

function byName<Row extends Named>(one: Row, other: Row): number {
  return one.name < other.name ? -1 : 1;
}

function byEnd<Row extends Upcoming>(one: Row, other: Row): number {
  return one.ends_at - other.ends_at;
}

/** Collects the first entries of a list and its length. */
class DigestList<Row> {
  readonly #order: (one: Row, other: Row) => number;
  first: readonly Row[] = [];
  count = 0;

  constructor(order: (one: Row, other: Row) => number) {
    this.#order = order;
  }

  add(rows: readonly Row[]): void {
    this.count += rows.length;
    this.first = [...this.first, ...rows].toSorted(this.#order).slice(0, maxListed);
  }
}

function isEmpty({ counts, backup_overdue_since }: Digest): boolean {
  return Object.values(counts).every((count) => count === 0) && backup_overdue_since === null;
}
