/** What a benchmark hands back, and how several rounds become one number. */

export type Figure = {
  /** What was measured, as a line of the table. */
  readonly name: string;
  readonly value: number;
  readonly unit: 'ms' | 'MB' | '/s' | 'requests';
};

/** The middle one, or the mean of the two middle ones: a round that something else disturbed does not move it. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  if (upper === undefined || lower === undefined) throw new Error('the median of nothing');
  return (lower + upper) / 2;
}
