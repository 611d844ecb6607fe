/**
 * The layout of the histogram: how many certificates expire in each week, in the person's time zone. Those that have
 * expired share a bucket at the left, those beyond the last week one at the right.
 */
import { type Group, groups } from './certificate-health.ts';

/** When a certificate expires, in milliseconds since 1970. */
export type Expiry = { readonly to: number; readonly group: Group };

export type Week = {
  /** The value of the filter: `expired`, a Monday (`2026-12-07`), or a Monday and all later weeks (`2027-03-01..`). */
  readonly id: string;
  readonly total: number;
  /** Only groups that the week has, in the order of `groups`. */
  readonly counts: readonly { readonly group: Group; readonly count: number }[];
};

const fewestWeeks = 6;
/** The weeks cover 19 in 20 certificates, and the rest if it needs few more weeks than these. */
const longestTail = 4;

/** All buckets from left to right, at most `most` weeks; also weeks without certificates. */
export function expiryWeeks(expiries: readonly Expiry[], now: number, most: number): Week[] {
  const starts = mondaysFrom(now, most + 1);
  const weekOf = (to: number) => starts.findLastIndex((start) => start <= to);
  const [expired = [], ahead = []] = [true, false].map((past) =>
    expiries.filter(({ to }) => to <= now === past),
  );
  const weeks = ahead.map(({ to }) => weekOf(to)).sort((a, b) => a - b);
  const usual = weeks[Math.floor(weeks.length * 0.95)] ?? 0;
  const last = weeks.at(-1) ?? 0;
  const covered = (last - usual <= longestTail ? last : usual) + 1;
  const shown = Math.min(most, Math.max(fewestWeeks, covered));
  const buckets = Map.groupBy(ahead, ({ to }) => Math.min(shown, weekOf(to)));
  const later = buckets.get(shown) ?? [];
  return [
    ...(expired.length > 0 ? [bucket('expired', expired)] : []),
    ...starts.slice(0, shown).map((start, index) => bucket(dateOf(start), buckets.get(index) ?? [])),
    ...(later.length > 0 ? [bucket(`${dateOf(starts[shown] ?? now)}..`, later)] : []),
  ];
}

function bucket(id: string, some: readonly Expiry[]): Week {
  const byGroup = Map.groupBy(some, ({ group }) => group);
  const counts = groups.flatMap(({ id: group }) => {
    const count = byGroup.get(group)?.length ?? 0;
    return count === 0 ? [] : [{ group, count }];
  });
  return { id, total: some.length, counts };
}

/** This week's Monday and those after it. Their distance is not always 168 hours. */
function mondaysFrom(now: number, count: number): number[] {
  const date = new Date(now);
  date.setHours(0, 0, 0, 0);
  date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
  return Array.from({ length: count }, () => {
    const start = date.getTime();
    date.setDate(date.getDate() + 7);
    return start;
  });
}

function dateOf(at: number): string {
  const date = new Date(at);
  const two = (number: number) => String(number).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The milliseconds from which and before which certificates of the bucket expire; undefined for other texts. */
function rangeOf(id: string, now: number): { from: number; before: number } | undefined {
  if (id === 'expired') return { from: Number.NEGATIVE_INFINITY, before: now + 1 };
  const [, day, open] = /^(\d{4}-\d\d-\d\d)(\.\.)?$/.exec(id) ?? [];
  const date = new Date(`${day}T00:00`);
  const start = date.getTime();
  if (Number.isNaN(start)) return undefined;
  date.setDate(date.getDate() + 7);
  const before = open === undefined ? date.getTime() : Number.POSITIVE_INFINITY;
  // Of the week that contains now, the picture has what expires after now. A week that is over has all of it.
  return { from: before > now ? Math.max(start, now + 1) : start, before };
}

/** The id of a week in an address, or an empty text if it is none. */
export function weekIn(text: string): string {
  return rangeOf(text, 0) === undefined ? '' : text;
}

/** Returns whether a certificate that expires at a time is in the bucket with this id; never if the time is NaN. */
export function weekTest(id: string, now: number): (to: number) => boolean {
  const range = rangeOf(id, now);
  return (to) => range !== undefined && to >= range.from && to < range.before;
}

/** Whether the id is not of a single week. */
export function isEndBucket(id: string): boolean {
  return id === 'expired' || id.endsWith('..');
}

/** "Week of 7 Dec", with the year if it is not this one. */
export function weekText(id: string, now: number): string {
  if (id === 'expired') return 'Expired';
  const start = dayText(id, now);
  return id.endsWith('..') ? `Later, from ${start} on` : `Week of ${start}`;
}

/** "7 Dec": the first day of a week, or of all later ones. */
export function dayText(id: string, now?: number): string {
  const date = new Date(`${id.slice(0, 10)}T00:00`);
  const isOtherYear = now !== undefined && date.getFullYear() !== new Date(now).getFullYear();
  return new Intl.DateTimeFormat(undefined, {
    ...{ day: 'numeric', month: 'short' },
    ...(isOtherYear && { year: 'numeric' }),
  }).format(date);
}

const words: Readonly<Record<Group, string>> = {
  ...{ expired: 'not valid yet', failing: 'failing', expiring: 'expiring soon' },
  ...{ healthy: 'healthy', inactive: 'disabled' },
};

/** "Week of 7 Dec: 12 certificates, 2 failing": the facts of a bucket, without those that go without saying. */
export function weekSummary({ id, total, counts }: Week, now: number): string {
  const obvious: readonly Group[] = id === 'expired' ? ['expired', 'healthy'] : ['healthy'];
  return [
    `${weekText(id, now)}: ${total.toLocaleString()} ${total === 1 ? 'certificate' : 'certificates'}`,
    ...counts
      .filter(({ group }) => !obvious.includes(group))
      .map(({ group, count }) => `${count.toLocaleString()} ${words[group]}`),
  ].join(', ');
}

/** The top of the axis: the least of 1, 2, 4, 6, 8, 10, 20, 40… that is not below the largest count. */
export function axisTop(largest: number): number {
  const unit = 10 ** Math.max(0, Math.ceil(Math.log10(Math.max(1, largest))) - 1);
  return ([1, 2, 4, 6, 8].find((step) => step * unit >= largest) ?? 10) * unit;
}
