/**
 * Checks whether a series of measurements is flat, with a linear fit of its second part. The first part is ignored,
 * because caches fill and the runtime allocates memory that it keeps.
 */

export type Sample = {
  /** Seconds. */
  readonly at: number;
  readonly value: number;
};

export type Trend = {
  readonly mean: number;
  /** The rise of the line over the second part. */
  readonly rise: number;
  /** The uncertainty of the rise: two standard errors. */
  readonly error: number;
  /** The same for an hour. */
  readonly perHour: number;
};

/** The least squares line through the second part. Throws if it has fewer than four samples. */
export function trendOf(samples: readonly Sample[]): Trend {
  const part = samples.slice(Math.floor(samples.length / 2));
  if (part.length < 4) throw new Error(`${samples.length} samples are too few for a trend`);
  const meanAt = meanOf(part.map(({ at }) => at));
  const mean = meanOf(part.map(({ value }) => value));
  let together = 0;
  let alone = 0;
  for (const { at, value } of part) {
    together += (at - meanAt) * (value - mean);
    alone += (at - meanAt) ** 2;
  }
  const slope = together / alone;
  const span = (part.at(-1)?.at ?? 0) - (part[0]?.at ?? 0);
  const left = part.reduce((sum, { at, value }) => sum + (value - mean - slope * (at - meanAt)) ** 2, 0);
  const error = 2 * span * Math.sqrt(left / (part.length - 2) / alone);
  return { mean, rise: slope * span, error, perHour: slope * 3600 };
}

/** The allowed rise over the second part: a share of the mean or an absolute value, whichever is greater. */
export type Allowance = { readonly share: number; readonly least: number };

/** Whether the rise is within the limit. A falling series is flat. */
export function isFlat({ mean, rise, error }: Trend, { share, least }: Allowance): boolean {
  return rise - error <= Math.max(mean * share, least);
}

function meanOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}
