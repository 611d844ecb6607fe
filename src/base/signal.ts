/** A signal for one waiter: a notification without a waiter is remembered, and several count as one. */
import type { World } from './world.ts';

export class Signal {
  readonly #world: World;
  #isNotified = false;
  #wake: (() => void) | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  notify(): void {
    this.#isNotified = true;
    this.#wake?.();
  }

  /**
   * Resolves at the next notification, after `ms` milliseconds, or when `signal` is aborted. Only one caller can wait
   * at a time.
   */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#isNotified) {
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await this.#world.sleep(ms, AbortSignal.any([signal, woken.signal]));
      this.#wake = undefined;
    }
    this.#isNotified = false;
  }
}
