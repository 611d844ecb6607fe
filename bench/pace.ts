/** How long to measure: long enough for the docs, or quickly during development. */

export type Pace = {
  /** Seconds per round. */
  readonly seconds: number;
  readonly rounds: number;
  /** Skips or shrinks slow benchmarks. */
  readonly isQuick: boolean;
};

export const fullPace: Pace = { seconds: 4, rounds: 5, isQuick: false };
export const quickPace: Pace = { seconds: 1, rounds: 1, isQuick: true };
