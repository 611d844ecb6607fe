/** What every chamber of the torture has in common: what it is handed, what it hands back, and chance that can be repeated. */
import { createHash } from 'node:crypto';

/** One count or time of the table at the end. */
export type Finding = { readonly name: string; readonly value: number; readonly unit?: string };

export type Order = {
  /** The executable. */
  readonly program: string;
  /** An empty folder, gone afterwards. */
  readonly folder: string;
  /** Everything random comes from it. */
  readonly chance: Chance;
  /** `--kills`, `--minutes` and so on: as on the command line, or undefined where the chamber decides. */
  readonly amount: (name: string) => number | undefined;
  /** One line about how it goes. */
  readonly say: (line: string) => void;
};

/** A chamber throws when the vault breaks a promise, saying which; else it hands back what it did. */
export type Chamber = (order: Order) => Promise<readonly Finding[]>;

/** Random numbers that are the same again for the same seed. */
export type Chance = {
  /** From 0 to below 1. */
  readonly fraction: () => number;
  /** From `least` to `most`, whole. */
  readonly whole: (least: number, most: number) => number;
  readonly one: <T>(of: readonly T[]) => T;
  /** True so many times in 1. */
  readonly happens: (share: number) => boolean;
  /** Another chance, for something that goes on at the same time. */
  readonly child: (name: string) => Chance;
};

/** Numbers by counting through SHA-256: slow and simple, and the same everywhere. */
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
      if (chosen === undefined) throw new Error('nothing to choose from');
      return chosen;
    },
    happens: (share) => fraction() < share,
    child: (name) => chanceFrom(`${seed}/${name}`),
  };
}
