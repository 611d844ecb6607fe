/**
 * Limits sign-in attempts: a few are free, then pauses grow, counted by name and by address. Every pause ends, so no
 * account is locked permanently. An administrator at an address from which they have signed in before has a separate
 * count, so that attackers cannot cause pauses for them.
 */

import { minute, second } from '../../base/duration.ts';
import { Problem } from '../../base/problem.ts';
import type { World } from '../../base/world.ts';
import { neighborhood } from '../../net/ip-network.ts';
import { boundedCache } from '../cache/bounded-cache.ts';

type Limit = { readonly free: number; readonly longest: number };

const byName: Limit = { free: 5, longest: 5 * minute };

/** Many people can share an address behind a proxy. */
const byAddress: Limit = { free: 20, longest: minute };

/** A count is dropped after this time without failures. */
const memory = 60 * minute;

const maxCached = 10_000;

type Count = { readonly failures: number; readonly at: number };

/** An attempt, which counts as failed until one of these is called. */
export type Attempt = {
  /** The password was right: resets the count of the name. */
  readonly succeeded: () => void;
  /** The password was not checked. */
  readonly withdrawn: () => void;
};

/** Whether the administrator has signed in from this address before. */
export type AddressStanding = 'known' | 'stranger';

/** The error for an attempt during a pause. `retryAfter` in seconds. */
function tooManyAttempts(retryAfter: number): Problem {
  return new Problem('rate_limited', {
    detail: 'Too many failed attempts; retry after the time in Retry-After.',
    retryAfter,
  });
}

/** The pause after this many failures, in milliseconds: 1, 2, 4, … seconds. */
export function pauseAfter(failures: number, { free, longest }: Limit): number {
  return failures < free ? 0 : Math.min(longest, second * 2 ** Math.min(failures - free, 30));
}

export class SignInBackoff {
  readonly #world: World;
  readonly #counts = boundedCache<string, Count>(maxCached);
  readonly #known = boundedCache<string, true>(maxCached);

  constructor(world: World) {
    this.#world = world;
  }

  /**
   * Starts an attempt and counts it immediately, so that parallel attempts get no advantage. Throws `rate_limited` with
   * the time to wait; such an attempt does not count.
   */
  begin(name: string | undefined, address: string | undefined, standing: AddressStanding): Attempt {
    const place = address === undefined ? 'unknown' : neighborhood(address);
    const keys = new Map([[`address ${place}`, byAddress]]);
    if (name !== undefined && standing === 'known') this.#known.set(`${name.toLowerCase()} ${place}`, true);
    if (name !== undefined) keys.set(this.#nameKey(name, place), byName);
    const wait = Math.max(...[...keys].map(([key, limit]) => this.#wait(key, limit)));
    if (wait > 0) throw tooManyAttempts(Math.ceil(wait / second));
    const before = new Map([...keys.keys()].map((key) => [key, this.#find(key).at]));
    const begun = this.#world.now();
    for (const key of keys.keys()) this.#count(key, 1);
    return {
      succeeded: () => {
        for (const [key, limit] of keys) {
          if (limit === byName) this.#counts.delete(key);
          else this.#count(key, -1);
        }
        if (name !== undefined) this.#known.set(`${name.toLowerCase()} ${place}`, true);
      },
      withdrawn: () => {
        for (const [key, at] of before) this.#withdraw(key, begun, at);
      },
    };
  }

  #nameKey(name: string, place: string): string {
    const pair = `${name.toLowerCase()} ${place}`;
    return this.#known.get(pair) === true ? `name and address ${pair}` : `name ${name.toLowerCase()}`;
  }

  #wait(key: string, limit: Limit): number {
    const { failures, at } = this.#find(key);
    const pause = pauseAfter(failures, limit);
    // A clock that was set back must not extend the pause.
    return Math.min(pause, at + pause - this.#world.now());
  }

  #count(key: string, change: number): void {
    const { failures, at } = this.#find(key);
    if (failures + change <= 0) this.#counts.delete(key);
    else this.#counts.set(key, { failures: failures + change, at: change > 0 ? this.#world.now() : at });
  }

  /** The pause after earlier failures goes on as if the attempt that began at `begun` had not been made. */
  #withdraw(key: string, begun: number, before: number): void {
    this.#count(key, -1);
    const count = this.#counts.get(key);
    if (count?.at === begun) this.#counts.set(key, { ...count, at: before });
  }

  #find(key: string): Count {
    const now = this.#world.now();
    const count = this.#counts.get(key);
    return count === undefined || count.at + memory <= now ? { failures: 0, at: now } : count;
  }
}
