/** Durations as people write them in options: a whole number and a unit. */

const units = { m: 60_000, h: 3_600_000, d: 86_400_000, y: 365 * 86_400_000 } as const;

export const second = 1000;
export const minute = units.m;
export const hour = units.h;
export const day = units.d;

/** As JSON Schema says it, for generated clients. */
export const durationPattern = '^[1-9]\\d{0,5}[mhdy]$';

/** Milliseconds of `30m`, `160h`, `90d` or `10y` (a year has 365 days); undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const match = /^([1-9]\d{0,5})([mhdy])$/.exec(text);
  if (match === null) return undefined;
  return Number(match[1]) * units[match[2] as keyof typeof units];
}

/** A lifetime in this format, in the longest unit but years; parsing it gives the same milliseconds. */
export function formatLifetime(ms: number): string {
  if (ms % day === 0) return `${ms / day}d`;
  return ms % hour === 0 ? `${ms / hour}h` : `${ms / minute}m`;
}
