/**
 * Whether a row of measurements is flat: by the straight line that fits its second part best. The first part is left out,
 * because caches fill and the runtime takes what it will keep.
 */

export type Sample = {
  /** Seconds. */
  readonly at: number;
  readonly value: number;
};

export type Trend = {
  readonly mean: number;
  /** How much the line rises from the beginning of the second part to its end. */
  readonly rise: number;
  /** The rise may be off by so much, because values go up and down: two standard errors. */
  readonly error: number;
  /** The same for an hour. */
  readonly perHour: number;
};

/** The line through the second part, by least squares. Throws where there are fewer than four samples in it. */
export function trendOf(samples: readonly Sample[]): Trend {
  const part = samples.slice(Math.floor(samples.length / 2));
  if (part.length < 4) throw new Error(`${samples.length} samples are too few to tell a trend`);
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

/** What may rise over the second part: a share of the mean, or so much, whichever is more. */
export type Allowance = { readonly share: number; readonly least: number };

/** Whether the rise, as far as it is one, is within what is allowed. What falls is flat. */
export function isFlat({ mean, rise, error }: Trend, { share, least }: Allowance): boolean {
  return rise - error <= Math.max(mean * share, least);
}

function meanOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}
