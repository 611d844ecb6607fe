/** The sign of life of the renewal engine, by which readiness sees that it is dead. */
import { second } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';

/** The engine beats every second or so; a minute of silence is a stroke. */
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

  /** Whether it has beaten at all. */
  get hasBegun(): boolean {
    return this.#lastBeat !== undefined;
  }

  get isFresh(): boolean {
    return this.#lastBeat !== undefined && this.#world.elapsed() - this.#lastBeat < freshFor;
  }
}
