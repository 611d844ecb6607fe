/** The heartbeat of the renewal engine, by which readiness detects that it is dead. */
import { second } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';

/** Beats come about every second; a minute without one means it is dead. */
const freshFor = 60 * second;

export class Heartbeat {
  readonly #world: World;
  #lastBeat: number | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  beat(): void {
    this.#lastBeat = this.#world.elapsed();
  }

  /** Whether there was any beat. */
  get hasBegun(): boolean {
    return this.#lastBeat !== undefined;
  }

  get isFresh(): boolean {
    return this.#lastBeat !== undefined && this.#world.elapsed() - this.#lastBeat < freshFor;
  }
}
