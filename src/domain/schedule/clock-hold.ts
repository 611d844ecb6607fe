/**
 * Up to which moment renewals are due. After the clock jumped by days it may be wrong: for an hour, renewals go by the
 * clock from before, so that a clock that is ahead for a moment replaces nothing. A clock that was set back after it
 * had run steadily causes no renewals for an hour.
 */
import { day, hour } from '../../base/duration.ts';
import { clockJump } from './steady-clock.ts';

/** How long a clock must have run before it is believed rather than one that jumped back. */
const steadyAfter = day;

/** How long a clock that jumped must run before renewals go by it. */
const confirmedAfter = hour;

/** Since when (`since`) the clock had run without a jump when it was last checked (`seen`), in UTC milliseconds. */
export type ClockRecord = { readonly since: number; readonly seen: number };

export class ClockHold {
  #seen: number | undefined;
  #steadyFor: number;
  /** How far the believed clock is behind this one. */
  #ahead = 0;

  /** Continues what an earlier process saw. */
  constructor(record?: ClockRecord) {
    this.#seen = record?.seen;
    this.#steadyFor = record === undefined ? 0 : record.seen - record.since;
  }

  /** Whether renewals do not go by the clock at present. */
  get isHolding(): boolean {
    return this.#ahead !== 0;
  }

  /** The moment up to which renewals are due, at `now`. Call it at least every few hours. */
  dueUntil(now: number): number {
    const passed = this.#seen === undefined ? 0 : now - this.#seen;
    this.#seen = now;
    if (Math.abs(passed) <= clockJump) this.#steadyFor += Math.max(0, passed);
    else {
      const backward = this.#steadyFor >= steadyAfter ? Number.POSITIVE_INFINITY : 0;
      this.#ahead = passed > 0 ? passed : backward;
      this.#steadyFor = 0;
    }
    if (this.#steadyFor >= confirmedAfter) this.#ahead = 0;
    return now - this.#ahead;
  }
}
