/** Sizes as people write them: a whole number and MB, GB or TB, in powers of 1000. */

const units = { MB: 1e6, GB: 1e9, TB: 1e12 } as const;

/** Bytes, or undefined if the text is not a size of at least one megabyte. */
export function parseByteSize(text: string): number | undefined {
  const [, digits, unit] = /^([1-9]\d{0,5}) ?(MB|GB|TB)$/i.exec(text) ?? [];
  if (digits === undefined || unit === undefined) return undefined;
  return Number(digits) * units[unit.toUpperCase() as keyof typeof units];
}

/** A size for people, in a suitable unit: `1.5 GB`. */
export function formatByteSize(bytes: number): string {
  if (bytes >= units.TB) return `${(bytes / units.TB).toFixed(1)} TB`;
  if (bytes >= units.GB) return `${(bytes / units.GB).toFixed(1)} GB`;
  return `${Math.floor(bytes / units.MB)} MB`;
}
