/** How long to measure: long enough for the docs, or quickly during development. */
import type { Turn } from './turns.ts';

export type Pace = {
  /** Seconds per round. */
  readonly seconds: number;
  readonly rounds: number;
  /** Skips or shrinks slow benchmarks. */
  readonly isQuick: boolean;
  /** Called between rounds: lets the other executable measure its round. */
  readonly turn: Turn;
};

export const fullPace: Omit<Pace, 'turn'> = { seconds: 4, rounds: 5, isQuick: false };
export const quickPace: Omit<Pace, 'turn'> = { seconds: 1, rounds: 1, isQuick: true };
