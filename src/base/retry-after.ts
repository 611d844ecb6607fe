/** Parses the Retry-After header (RFC 9110 §10.2.3). */
import { day, second } from './duration.ts';

/** Longer waits are not plausible. */
const longest = 7 * day;
const httpDate =
  /^((Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4}|[A-Z][a-z]+day, \d{2}-[A-Z][a-z]{2}-\d{2}) \d{2}:\d{2}:\d{2} GMT$/;
const asctime = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/;

/**
 * Milliseconds from `now` (UTC milliseconds) until the time in a Retry-After header: seconds or an HTTP date in one of
 * its three forms. Never negative, 7 days at most; undefined if the header is missing or unreadable.
 */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d+$/.test(text)) return Math.min(Number(text) * second, longest);
  const at = dateOf(text);
  return at === undefined ? undefined : Math.min(Math.max(at - now, 0), longest);
}

function dateOf(text: string): number | undefined {
  // asctime has no time zone and means UTC.
  const full = asctime.test(text) ? `${text} GMT` : text;
  if (full === text && !httpDate.test(text)) return undefined;
  const at = Date.parse(full);
  return Number.isNaN(at) ? undefined : at;
}
