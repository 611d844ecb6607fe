/**
 * How often passwords may be tried: a few times for free, then with growing pauses, by name and by address. A pause
 * always ends, so nobody is locked out for good; and a person at an address where they have signed in before has a
 * count of their own there, so that strangers cannot use the pauses up in their place.
 */

import { LRUCache } from 'lru-cache';
import { minute, second } from '../../base/duration.ts';
import { Problem } from '../../base/problem.ts';
import type { World } from '../../base/world.ts';
import { neighborhood } from '../../net/ip-network.ts';

type Limit = { readonly free: number; readonly longest: number };

const byName: Limit = { free: 5, longest: 5 * minute };

/** Many people can share one address, all of them behind the same proxy. */
const byAddress: Limit = { free: 20, longest: minute };

/** A count is forgotten when nothing has failed for so long. */
const memory = 60 * minute;

const mostRemembered = 10_000;

type Count = { readonly failures: number; readonly at: number };

/** An attempt under way, which counts as failed until it says otherwise. */
export type Attempt = {
  /** The password was right: the name begins anew. */
  readonly succeeded: () => void;
  /** It was never decided. */
  readonly withdrawn: () => void;
};

/** Whether the person has signed in from this address before. */
export type AddressStanding = 'known' | 'stranger';

/** What is asked before a password is tried: by the one process that serves, or, for all that do, by the first of them. */
export type SignInPauses = {
  /** Begins an attempt. Throws `rate_limited`. */
  readonly begin: (
    name: string | undefined,
    address: string | undefined,
    standing: AddressStanding,
  ) => Attempt | Promise<Attempt>;
};

/** What an attempt is told that comes too early. `retryAfter` in seconds. */
export function tooManyAttempts(retryAfter: number): Problem {
  return new Problem('rate_limited', {
    detail: 'Too many attempts have failed; wait as long as Retry-After says.',
    retryAfter,
  });
}

/** How long after the last of so many failures nothing is tried, in milliseconds: 1, 2, 4, … seconds. */
export function pauseAfter(failures: number, { free, longest }: Limit): number {
  return failures < free ? 0 : Math.min(longest, second * 2 ** Math.min(failures - free, 30));
}

export class SignInBackoff implements SignInPauses {
  readonly #world: World;
  readonly #counts = new LRUCache<string, Count>({ max: mostRemembered });
  readonly #known = new LRUCache<string, true>({ max: mostRemembered });

  constructor(world: World) {
    this.#world = world;
  }

  /**
   * Begins an attempt, counted at once, so that many in parallel are as many as one after the other. Throws
   * `rate_limited` with the time to wait; such an attempt does not count.
   */
  begin(name: string | undefined, address: string | undefined, standing: AddressStanding): Attempt {
    const place = address === undefined ? 'unknown' : neighborhood(address);
    const keys = new Map([[`address ${place}`, byAddress]]);
    if (name !== undefined && standing === 'known') this.#known.set(`${name.toLowerCase()} ${place}`, true);
    if (name !== undefined) keys.set(this.#nameKey(name, place), byName);
    const wait = Math.max(...[...keys].map(([key, limit]) => this.#wait(key, limit)));
    if (wait > 0) throw tooManyAttempts(Math.ceil(wait / second));
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
        for (const key of keys.keys()) this.#count(key, -1);
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
    // When the clock was set back, no pause gets longer.
    return Math.min(pause, at + pause - this.#world.now());
  }

  #count(key: string, change: number): void {
    const { failures, at } = this.#find(key);
    if (failures + change <= 0) this.#counts.delete(key);
    else this.#counts.set(key, { failures: failures + change, at: change > 0 ? this.#world.now() : at });
  }

  #find(key: string): Count {
    const now = this.#world.now();
    const count = this.#counts.get(key);
    return count === undefined || count.at + memory <= now ? { failures: 0, at: now } : count;
  }
}
