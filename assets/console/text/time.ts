/** Formats times and durations in the person's language and time zone. */

const minute = 60_000;
const hour = 60 * minute;
export const day = 24 * hour;

const units: readonly (readonly [Intl.RelativeTimeFormatUnit, number, number])[] = [
  // unit, its length, and the shortest span it is used for
  ['year', 365 * day, 700 * day],
  ['month', 30 * day, 100 * day],
  ['day', day, 2 * day],
  ['hour', hour, 1.5 * hour],
  ['minute', minute, 1.5 * minute],
];

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const dateAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const dateOnly = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const exactTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });

/** "in 3 days", "2 minutes ago", "now". */
export function relativeTime(at: number, now: number): string {
  const span = at - now;
  for (const [unit, length, from] of units) {
    if (Math.abs(span) >= from)
      return relative.format(
        unit === 'hour' || unit === 'minute' ? Math.round(span / length) : Math.trunc(span / length),
        unit,
      );
  }
  return Math.abs(span) < 45_000 ? relative.format(0, 'second') : relative.format(Math.sign(span), 'minute');
}

/** "21 Nov 2026, 14:30". */
export function absoluteTime(at: number): string {
  return dateAndTime.format(at);
}

/** "21 Nov 2026". */
export function dateText(at: number): string {
  return dateOnly.format(at);
}

/** With the seconds and the time zone's name, and below it the time in UTC. */
export function exactTimeText(at: number): string {
  return `${exactTime.format(at)}\n${new Date(at)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' UTC')}`;
}

/** Whole days left; negative after the end. */
export function daysLeft(until: number, now: number): number {
  return Math.trunc((until - now) / day) || 0;
}

/** "4 s", "2 min 10 s": formats a duration in milliseconds. */
export function durationText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (ms < 1000) return `${ms} ms`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
