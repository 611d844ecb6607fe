/** How long is measured: as long as figures for the docs need, or as short as one wants to wait while working. */

export type Pace = {
  /** Of each round. */
  readonly seconds: number;
  readonly rounds: number;
};

export const fullPace: Pace = { seconds: 4, rounds: 5 };
export const quickPace: Pace = { seconds: 1, rounds: 2 };
