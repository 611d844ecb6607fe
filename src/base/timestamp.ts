/** Timestamps: RFC 3339 outside, UTC milliseconds inside. */
import { day, hour, minute, second } from './duration.ts';

const pattern =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

const earliest = Date.parse('0000-01-01T00:00:00Z');
/** The last moment that RFC 3339 can write. */
export const latestTimestamp = Date.parse('9999-12-31T23:59:59.999Z');

/** Milliseconds of an RFC 3339 timestamp (§5.6, an offset is required), or undefined if invalid. */
export function parseTimestamp(text: string): number | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const daysInMonth = new Date(Date.UTC(year, month, 0)).getUTCDate();
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth) return undefined;
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const ms = Date.parse(text.toUpperCase());
  // An offset can lead out of the years that RFC 3339 supports.
  return ms >= earliest && ms <= latestTimestamp ? ms : undefined;
}

/** RFC 3339 in UTC with `Z`; whole seconds without a fraction. */
export function formatTimestamp(ms: number): string {
  const time = Math.trunc(ms);
  const number = Math.floor(time / day);
  const inDay = time - number * day;
  const fraction = inDay % second;
  const clock = `${two(Math.floor(inDay / hour))}:${two(Math.floor(inDay / minute) % 60)}:${two(Math.floor(inDay / second) % 60)}`;
  const parts = fraction === 0 ? '' : `.${String(fraction).padStart(3, '0')}`;
  return `${dateOf(number)}T${clock}${parts}Z`;
}

/** Like `formatTimestamp`; null stays null. */
export function formatTimestampOrNull(ms: number | null): string | null {
  return ms === null ? null : formatTimestamp(ms);
}

/** Cache of formatted days: lists contain many timestamps and few days. */
const dates = new Map<number, string>();
const maxDates = 1000;

/** The date of the day with this number, counted from 1970. Throws RangeError if out of range. */
function dateOf(number: number): string {
  const known = dates.get(number);
  if (known !== undefined) return known;
  const [date = ''] = new Date(number * day).toISOString().split('T');
  if (dates.size >= maxDates) dates.clear();
  dates.set(number, date);
  return date;
}

function two(number: number): string {
  return number < 10 ? `0${number}` : String(number);
}
