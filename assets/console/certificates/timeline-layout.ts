/** The layout of the timeline: its rows and the ticks of its time axis. */

import { day } from '../text/time.ts';
import { byHealth, type Health } from './certificate-health.ts';

export type Life = {
  readonly name: string;
  /** Milliseconds since 1970, as all times in this file. */
  readonly from: number;
  readonly to: number;
  readonly renewAt: number | undefined;
  readonly health: Health;
};

export type Layout<T> = {
  /** Those that need attention first. */
  readonly rows: readonly T[];
  readonly start: number;
  readonly end: number;
};

/** The timeline has a row for each certificate; more than this many are a histogram (expiry-weeks.ts). */
export const maxLives = 16;

export function timelineLayout<T extends Life>(lives: readonly T[], now: number): Layout<T> {
  const rows = lives.toSorted((a, b) => byHealth(a.health, b.health) || a.to - b.to);
  return { rows, ...span(lives, now) };
}

const spans = [7, 14, 30, 60, 90, 180, 365, 730, 1825, 3650];

/** The time axis: it begins a third of its length before now and covers the expiry of nine in ten bars. */
function span(lives: readonly Life[], now: number): { start: number; end: number } {
  const ahead = lives
    .map(({ to }) => to - now)
    .filter((left) => left > 0)
    .sort((a, b) => a - b);
  const wanted = ahead[Math.floor(ahead.length * 0.9)] ?? ahead.at(-1) ?? 0;
  const length = (spans.find((days) => days * day >= wanted) ?? 3650) * day;
  return { start: now - length / 3, end: now + length * 1.03 };
}

export type Tick = { readonly at: number; readonly label: string };

/** Ticks at days, Mondays, months, quarters or years in the person's time zone, at most `most` of them. */
export function ticks(start: number, end: number, most: number): Tick[] {
  const monthly = (months: number) => (date: Date) => date.setMonth(date.getMonth() + months);
  const steps: readonly (readonly [number, (date: Date) => unknown, Intl.DateTimeFormatOptions])[] = [
    [1, (date) => date.setDate(date.getDate() + 1), { day: 'numeric', month: 'short' }],
    [7, (date) => date.setDate(date.getDate() + 7), { day: 'numeric', month: 'short' }],
    [30, monthly(1), { month: 'short' }],
    [91, monthly(3), { month: 'short', year: 'numeric' }],
    [365, monthly(12), { year: 'numeric' }],
    [1825, monthly(60), { year: 'numeric' }],
  ];
  const days = (end - start) / day;
  const [length, next, format] = steps.find(([each]) => days / each <= most) ?? steps.at(-1) ?? fail();
  const text = new Intl.DateTimeFormat(undefined, format);
  const found: Tick[] = [];
  for (const date = firstTick(start, length); date.getTime() < end; next(date)) {
    if (date.getTime() > start) found.push({ at: date.getTime(), label: text.format(date) });
  }
  return found;
}

function firstTick(start: number, length: number): Date {
  const date = new Date(start);
  date.setHours(0, 0, 0, 0);
  if (length === 7) date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
  if (length >= 30) date.setDate(1);
  if (length >= 91) date.setMonth(date.getMonth() - (date.getMonth() % 3));
  if (length >= 365) date.setMonth(0);
  if (length >= 1825) date.setFullYear(date.getFullYear() - (date.getFullYear() % 5));
  return date;
}

function fail(): never {
  throw new Error('no tick step');
}
