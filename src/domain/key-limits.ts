/**
 * How often API keys may fail and be used. A key that counts is never kept out by failures, its own address's or any
 * others: only what has failed anyway is answered with a pause.
 */
import { second } from '../base/duration.ts';
import { neighbourhood } from '../base/ip-network.ts';
import { Problem } from '../base/problem.ts';
import type { World } from '../base/world.ts';
import { type Pace, TokenBuckets } from './token-buckets.ts';

/** A fleet behind one address whose key was revoked fails often too, and should be told why. */
export const failurePace: Pace = { burst: 100, perMinute: 60 };

export class KeyLimits {
  readonly #failures: TokenBuckets;
  readonly #recordedFailures: TokenBuckets;
  readonly #requests: TokenBuckets | undefined;
  readonly #recordedExcesses: TokenBuckets;

  /** `perMinute` requests with one key; as many as come where it is 0. */
  constructor(world: World, perMinute: number) {
    this.#failures = new TokenBuckets(world, failurePace);
    this.#recordedFailures = new TokenBuckets(world, failurePace);
    this.#requests = perMinute === 0 ? undefined : new TokenBuckets(world, { burst: perMinute, perMinute });
    this.#recordedExcesses = new TokenBuckets(world, { burst: 1, perMinute: 1 });
  }

  /** Counts a key that did not count at this address. Throws `rate_limited` where there were too many. */
  fail(address: string | undefined): void {
    const wait = this.#failures.take(placeOf(address));
    if (wait > 0) throw paused('Too many API keys that do not count came from this address', wait);
  }

  /**
   * Counts a failure of a key that is known, before it is recorded. Throws `rate_limited` where so many were recorded
   * lately that one more tells nothing new.
   */
  failKnown(id: number, address: string | undefined): void {
    const wait = this.#recordedFailures.take(`${id} ${placeOf(address)}`);
    if (wait > 0) throw paused('This API key does not count, and came too often', wait);
  }

  /** Counts a request with a key that counts: the problem where there were too many. */
  excessOf(id: number): Problem | undefined {
    const wait = this.#requests?.take(String(id)) ?? 0;
    return wait > 0 ? paused('There were too many requests with this API key', wait) : undefined;
  }

  /** Whether this excess of a key is to be recorded: one a minute is. */
  isNews(id: number): boolean {
    return this.#recordedExcesses.take(String(id)) === 0;
  }
}

function placeOf(address: string | undefined): string {
  return address === undefined ? 'unknown' : neighbourhood(address);
}

function paused(what: string, wait: number): Problem {
  return new Problem('rate_limited', {
    detail: `${what}; wait as long as Retry-After says.`,
    retryAfter: Math.ceil(wait / second),
  });
}
