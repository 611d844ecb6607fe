/** A bell that wakes whoever waits for work: a ring while nobody waits is remembered, several rings count as one. */
import type { World } from './world.ts';

export class Bell {
  readonly #world: World;
  #rung = false;
  #wake: (() => void) | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Resolves at the next ring, after `ms` milliseconds, or when `signal` is aborted. One waits at a time. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung) {
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await this.#world.sleep(ms, AbortSignal.any([signal, woken.signal]));
      this.#wake = undefined;
    }
    this.#rung = false;
  }
}
