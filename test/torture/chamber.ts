/** The shared types of the torture chambers, and repeatable random numbers. */
import { createHash } from 'node:crypto';

/** A row of the table at the end. */
export type Finding = { readonly name: string; readonly value: number; readonly unit?: string };

export type Order = {
  /** The executable. */
  readonly program: string;
  /** An empty folder, which is removed afterwards. */
  readonly folder: string;
  /** The only source of randomness. */
  readonly chance: Chance;
  /** Amounts from the command line, such as `--kills`; undefined for the default of the chamber. */
  readonly amount: (name: string) => number | undefined;
  /** Prints a line about the progress. */
  readonly say: (line: string) => void;
};

/** A chamber throws if the vault breaks a promise; else it returns its findings. */
export type Chamber = (order: Order) => Promise<readonly Finding[]>;

/** Random numbers from a seed. */
export type Chance = {
  /** A number from 0 to below 1. */
  readonly fraction: () => number;
  /** An integer from `least` to `most`. */
  readonly whole: (least: number, most: number) => number;
  readonly one: <T>(of: readonly T[]) => T;
  /** True with this probability. */
  readonly happens: (share: number) => boolean;
  /** An independent source for a concurrent task. */
  readonly child: (name: string) => Chance;
};

/** Numbers from SHA-256 in counter mode: slow, simple, and the same on every system. */
export function chanceFrom(seed: string): Chance {
  let count = 0;
  const fraction = () =>
    createHash('sha256').update(`${seed}/${count++}`).digest().readUIntBE(0, 6) / 2 ** 48;
  const whole = (least: number, most: number) => least + Math.floor(fraction() * (most - least + 1));
  return {
    fraction,
    whole,
    one: (of) => {
      const chosen = of[whole(0, of.length - 1)];
      if (chosen === undefined) throw new Error('cannot choose from an empty list');
      return chosen;
    },
    happens: (share) => fraction() < share,
    child: (name) => chanceFrom(`${seed}/${name}`),
  };
}
