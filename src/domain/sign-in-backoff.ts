/**
 * How often passwords may be tried: a few times for free, then with growing pauses, by name and by address. A pause
 * always ends, so nobody is locked out for good; and a person at an address where they have signed in before has a
 * count of their own there, so that strangers cannot use the pauses up in their place.
 */
import { isIPv6 } from 'node:net';
import { minute, second } from '../base/duration.ts';
import { Problem } from '../base/problem.ts';
import type { World } from '../base/world.ts';

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

/** How long after the last of so many failures nothing is tried, in milliseconds: 1, 2, 4, … seconds. */
export function pauseAfter(failures: number, { free, longest }: Limit): number {
  return failures < free ? 0 : Math.min(longest, second * 2 ** Math.min(failures - free, 30));
}

export class SignInBackoff {
  readonly #world: World;
  readonly #counts = new Map<string, Count>();
  readonly #known = new Map<string, true>();

  constructor(world: World) {
    this.#world = world;
  }

  /**
   * Begins an attempt, counted at once, so that many in parallel are as many as one after the other. Throws
   * `rate_limited` with the time to wait; such an attempt does not count.
   */
  begin(name: string | undefined, address: string | undefined): Attempt {
    const place = addressKey(address);
    const keys = new Map([[`address ${place}`, byAddress]]);
    if (name !== undefined) keys.set(this.#nameKey(name, place), byName);
    const wait = Math.max(...[...keys].map(([key, limit]) => this.#wait(key, limit)));
    if (wait > 0) {
      throw new Problem('rate_limited', {
        detail: 'Too many attempts have failed; wait as long as Retry-After says.',
        retryAfter: Math.ceil(wait / second),
      });
    }
    for (const key of keys.keys()) this.#count(key, 1);
    return {
      succeeded: () => {
        for (const [key, limit] of keys) {
          if (limit === byName) this.#counts.delete(key);
          else this.#count(key, -1);
        }
        if (name !== undefined) remember(this.#known, `${name.toLowerCase()} ${place}`, true);
      },
      withdrawn: () => {
        for (const key of keys.keys()) this.#count(key, -1);
      },
    };
  }

  #nameKey(name: string, place: string): string {
    const pair = `${name.toLowerCase()} ${place}`;
    return this.#known.has(pair) ? `name and address ${pair}` : `name ${name.toLowerCase()}`;
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
    else
      remember(this.#counts, key, { failures: failures + change, at: change > 0 ? this.#world.now() : at });
  }

  #find(key: string): Count {
    const now = this.#world.now();
    const count = this.#counts.get(key);
    return count === undefined || count.at + memory <= now ? { failures: 0, at: now } : count;
  }
}

/** Puts the value last, and forgets the oldest where there are too many. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > mostRemembered && !oldest.done) map.delete(oldest.value);
}

/** Of an IPv6 address the first 64 bits: whoever has one has all that begin so. */
function addressKey(address = 'unknown'): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail = ''] = (address.split('%')[0] ?? '').split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail === '' ? [] : tail.split(':');
  const zeros = address.includes('::') ? Math.max(0, 8 - first.length - last.length) : 0;
  return [...first, ...Array<string>(zeros).fill('0'), ...last].slice(0, 4).join(':').toLowerCase();
}
