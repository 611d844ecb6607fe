/** Lets users do what they do again and again, all at the same time, in shifts between which nothing is on its way. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Chance } from './chamber.ts';

/** By name: how many there are, and what each does once. */
export type Users = Readonly<
  Record<string, { readonly count: number; readonly once: (chance: Chance) => Promise<void> }>
>;

export class NodeShifts {
  readonly #over: Promise<unknown>;
  #busy = 0;
  #gate: PromiseWithResolvers<void> | undefined = Promise.withResolvers();
  #isOver = false;

  /** They wait for `resume` first. `failed` is called with what they throw. */
  constructor(users: Users, chance: Chance, failed: (error: Error) => void) {
    const all = Object.entries(users).flatMap(([name, { count, once }]) =>
      Array.from({ length: count }, (_, index) =>
        this.#again(once, chance.child(`${name} ${index}`), failed),
      ),
    );
    this.#over = Promise.all(all);
  }

  resume(): void {
    this.#gate?.resolve();
    this.#gate = undefined;
  }

  /** Resolves when each user has done what it had begun. */
  async pause(): Promise<void> {
    this.#gate ??= Promise.withResolvers();
    while (this.#busy > 0) await delay(5);
  }

  /** Ends them; resolves when they have ended. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.resume();
    await this.#over;
  }

  async #again(
    once: (chance: Chance) => Promise<void>,
    chance: Chance,
    failed: (error: Error) => void,
  ): Promise<void> {
    while (!this.#isOver) {
      await this.#gate?.promise;
      if (this.#isOver) return;
      this.#busy += 1;
      try {
        await once(chance);
      } catch (error) {
        failed(error as Error);
      } finally {
        this.#busy -= 1;
      }
    }
  }
}
