/**
 * The layout of the timeline: its bars and the ticks of its time axis. Each certificate that needs attention gets a
 * named row; if there are many healthy certificates, those with a similar expiry share a thin row.
 */

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

export type Row = Life & {
  /**
   * The number of certificates in the row. In a group, `to` is the first expiry, `last` the last, and `renewAt` the
   * first renewal.
   */
  readonly count: number;
  readonly last: number;
};

export type Layout = {
  readonly named: readonly Row[];
  readonly thin: readonly Row[];
  readonly start: number;
  readonly end: number;
};

/** Up to this many certificates get a named row each. */
export const maxNamed = 16;
/** With more certificates, up to this many that need attention get a named row. */
const maxTrouble = 12;
const maxThinRows = 64;

export function timelineLayout(lives: readonly Life[], now: number): Layout {
  const sorted = lives.toSorted((a, b) => byHealth(a.health, b.health) || a.to - b.to);
  const isSmall = sorted.length <= maxNamed;
  const trouble = sorted.filter(({ health }) => health === 'bad' || health === 'warning');
  const named = isSmall ? sorted : trouble.slice(0, maxTrouble);
  const rest = isSmall ? [] : sorted.slice(named.length);
  return { named: named.map(single), thin: thinRows(rest), ...span(lives, now) };
}

const single = (life: Life): Row => ({ ...life, count: 1, last: life.to });

/** Groups certificates of the same health, so that a row has one color. */
function thinRows(rest: readonly Life[]): Row[] {
  const rows: Row[] = [];
  for (const [health, group] of Map.groupBy(rest, (life) => life.health)) {
    // Certificates that need attention get rows of their own even among thousands of others.
    const isTrouble = health === 'bad' || health === 'warning';
    const size = isTrouble ? Math.ceil(group.length / maxTrouble) : Math.ceil(rest.length / maxThinRows);
    for (let at = 0; at < group.length; at += size) rows.push(grouped(group.slice(at, at + size)));
  }
  return rows;
}

function grouped(group: readonly Life[]): Row {
  const [first] = group;
  if (first === undefined) throw new Error('empty group');
  const renewals = group.flatMap(({ renewAt }) => renewAt ?? []);
  return {
    ...first,
    from: group.reduce((sum, { from }) => sum + from, 0) / group.length,
    to: first.to,
    renewAt: renewals.length === 0 ? undefined : Math.min(...renewals),
    count: group.length,
    last: group.at(-1)?.to ?? first.to,
  };
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
