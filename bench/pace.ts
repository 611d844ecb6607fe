/** How long is measured: as long as figures for the docs need, or as short as one wants to wait while working. */

export type Pace = {
  /** Of each round. */
  readonly seconds: number;
  readonly rounds: number;
  /** What takes long is left out or made smaller. */
  readonly isQuick: boolean;
};

export const fullPace: Pace = { seconds: 4, rounds: 5, isQuick: false };
export const quickPace: Pace = { seconds: 1, rounds: 1, isQuick: true };
