/** Moments as people write them in options: a duration from now, a date, or an RFC 3339 timestamp. */
import { parseDuration } from './duration.ts';
import { latestTimestamp, parseTimestamp } from './timestamp.ts';

/** Whether a duration leads into the past, as in `--since 7d`, or into the future, as in `--expires-at 90d`. */
export type Direction = 'ago' | 'ahead';

/** What to write, after "use". */
export const momentForms = '90d, 2030-01-31 (from 00:00 UTC) or 2030-01-31T00:00:00Z';

const date = /^\d{4}-\d{2}-\d{2}$/;

/**
 * UTC milliseconds, or undefined if invalid. A date is the start of that day in UTC; see `parseDuration` and
 * `parseTimestamp`.
 */
export function parseMoment(text: string, now: number, direction: Direction): number | undefined {
  const duration = parseDuration(text);
  if (duration === undefined) return parseTimestamp(date.test(text) ? `${text}T00:00:00Z` : text);
  if (direction === 'ago') return Math.max(0, now - duration);
  return now + duration <= latestTimestamp ? now + duration : undefined;
}
