/**
 * Selects the kinds of responses to wait for before the next kill, each in turn, so that a run covers all of them even
 * on a busy machine. Some rounds wait for none, so that the kill comes at a random moment.
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
    // Twice as many as needed, for the rounds that wait for none.
    this.#perRound = Math.ceil((2 * deedKinds.length) / rounds);
  }

  /** Whether the remaining rounds are too few to skip this one. */
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
