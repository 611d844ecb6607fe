/**
 * How often API keys may fail and be used. A key that counts is never kept out by failures, its own address's or any
 * others: only what has failed anyway is answered with a pause.
 */
import { second } from '../../base/duration.ts';
import { Problem } from '../../base/problem.ts';
import type { World } from '../../base/world.ts';
import { neighborhood } from '../../net/ip-network.ts';
import { HourlyCounts } from './hourly-counts.ts';
import { type Pace, TokenBuckets } from './token-buckets.ts';

/** A fleet behind one address whose key was revoked fails often too, and should be told why. */
export const failurePace: Pace = { burst: 100, perMinute: 60 };

/** What is counted. */
export type KeyCount =
  | 'failures'
  | 'recordedFailures'
  | 'requests'
  | 'records'
  | 'recordedExcesses'
  | 'recordedRefusals';

/**
 * How many requests that leave an audit event one key may make where no rate is set: 100 a second, which no fleet comes near,
 * and which keeps a key that was stolen from filling the disk.
 */
export const recordPace: Pace = { burst: 10_000, perMinute: 6000 };

/** Refusals of one kind of one caller that are recorded in full in an hour; those after that are counted. */
export const refusalsPerHour = 100;

type Counter = Pick<TokenBuckets, 'take' | 'takenElsewhere'>;

/** Is told of whatever was counted here, so that the other processes of the vault count it too. */
export type ReportCount = (count: KeyCount, name: string) => void;

export class KeyLimits {
  readonly #buckets: Readonly<Record<KeyCount, Counter | undefined>>;
  readonly #tell: ReportCount | undefined;

  /**
   * `perMinute` requests of any kind with one key; as many as come where it is 0; undefined limits only those that are recorded,
   * by `recordPace`.
   */
  constructor(world: World, perMinute: number | undefined, tell?: ReportCount) {
    this.#buckets = {
      failures: new TokenBuckets(world, failurePace),
      recordedFailures: new TokenBuckets(world, failurePace),
      requests: perMinute ? new TokenBuckets(world, { burst: perMinute, perMinute }) : undefined,
      records: perMinute === undefined ? new TokenBuckets(world, recordPace) : undefined,
      recordedExcesses: new TokenBuckets(world, { burst: 1, perMinute: 1 }),
      recordedRefusals: new HourlyCounts(world, refusalsPerHour),
    };
    this.#tell = tell;
  }

  /** Counts what another process of the vault has counted. */
  takenElsewhere(count: KeyCount, name: string, times: number): void {
    this.#buckets[count]?.takenElsewhere(name, times);
  }

  /** Counts a key that did not count at this address. Throws `rate_limited` where there were too many. */
  fail(address: string | undefined): void {
    const wait = this.#take('failures', placeOf(address));
    if (wait > 0) throw paused('Too many API keys that do not count came from this address', wait);
  }

  /**
   * Counts a failure of a key that is known, before it is recorded. Throws `rate_limited` where so many were recorded
   * lately that one more tells nothing new.
   */
  failKnown(id: number, address: string | undefined): void {
    const wait = this.#take('recordedFailures', `${id} ${placeOf(address)}`);
    if (wait > 0) throw paused('This API key does not count, and came too often', wait);
  }

  /** Counts a request with a key that counts: the problem where there were too many. */
  limitExceeded(id: number): Problem | undefined {
    const wait = this.#take('requests', String(id));
    return wait > 0 ? paused('There were too many requests with this API key', wait) : undefined;
  }

  /** Counts a request that is about to be recorded: the problem where there were too many. */
  recordExcessOf(id: number): Problem | undefined {
    const wait = this.#take('records', String(id));
    return wait > 0 ? paused('There were too many requests with this API key', wait) : undefined;
  }

  /** Whether a refusal of this kind (`Refusals.kindOf`) is recorded in full, or only counted. */
  howToRecord(kind: string): 'in full' | 'counted' {
    return this.#take('recordedRefusals', kind) === 0 ? 'in full' : 'counted';
  }

  /** Whether this excess of a key is to be recorded: one a minute is. */
  isFirstReport(id: number): boolean {
    return this.#take('recordedExcesses', String(id)) === 0;
  }

  #take(count: KeyCount, name: string): number {
    const wait = this.#buckets[count]?.take(name) ?? 0;
    if (wait === 0) this.#tell?.(count, name);
    return wait;
  }
}

function placeOf(address: string | undefined): string {
  return address === undefined ? 'unknown' : neighborhood(address);
}

function paused(what: string, wait: number): Problem {
  return new Problem('rate_limited', {
    detail: `${what}; wait as long as Retry-After says.`,
    retryAfter: Math.ceil(wait / second),
  });
}
