/**
 * Which answers have to come before the next kill: each kind in turn, so that a run has them all however busy the machine
 * is. Some rounds want nothing, and the kill comes whenever it comes.
 */
import type { Chance } from './chamber.ts';
import { type Deed, deedKinds } from './ledger.ts';

type Kind = Deed['kind'];

export class WantedAnswers {
  readonly #chance: Chance;
  readonly #perRound: number;
  #given = 0;

  constructor(rounds: number, chance: Chance) {
    this.#chance = chance;
    // Twice as many as are needed, for the rounds that want nothing.
    this.#perRound = Math.ceil((2 * deedKinds.length) / rounds);
  }

  /** Whether kinds would never have been wanted if this round, one of so many that are left, wanted none. */
  mustWant(roundsLeft: number): boolean {
    return deedKinds.length - this.#given > this.#perRound * (roundsLeft - 1);
  }

  /** The kinds that this round waits for. */
  next(roundsLeft: number): readonly Kind[] {
    if (this.#chance.happens(0.3) && !this.mustWant(roundsLeft)) return [];
    return Array.from(
      { length: Math.min(this.#perRound, deedKinds.length) },
      () => deedKinds[this.#given++ % deedKinds.length] as Kind,
    );
  }
}
