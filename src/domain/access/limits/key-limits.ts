/**
 * Rate limits for API keys and ACME clients. Failures never block a valid key, not even one from the same address: only
 * requests that failed anyway are answered with a pause.
 */
import { second } from '../../../base/duration.ts';
import { Problem } from '../../../base/problem.ts';
import type { World } from '../../../base/world.ts';
import { neighborhood } from '../../../net/ip-network.ts';
import { HourlyCounts } from './hourly-counts.ts';
import { type Pace, TokenBuckets } from './token-buckets.ts';

/** Generous, because a whole fleet behind one address may use a revoked key and should learn why it fails. */
export const failurePace: Pace = { burst: 100, perMinute: 60 };

/** The things that are counted. */
type KeyCount =
  | 'failures'
  | 'recordedFailures'
  | 'requests'
  | 'records'
  | 'pages'
  | 'renewals'
  | 'changes'
  | 'exchanges'
  | 'recordedExcesses'
  | 'recordedRefusals'
  | 'revocations'
  | 'certificateRevocations';

/**
 * The default rate of recorded requests per key: 100 per second, far more than a fleet needs, but it keeps a stolen key
 * from filling the disk.
 */
export const recordPace: Pace = { burst: 10_000, perMinute: 6000 };

/** The default rate of pages of lists per key: each costs milliseconds of the event loop, however much it changed. */
export const pagePace: Pace = { burst: 1000, perMinute: 600 };

/**
 * Renewals of one certificate per key and hour: each adds a version, which is kept, and makes all clients of the
 * certificate install it.
 */
export const renewalsPerHour = 10;

/** Requests without an account from one address to revoke certificates: each verifies a signature and searches. */
export const revocationPace: Pace = { burst: 100, perMinute: 60 };

/**
 * Requests per hour to revoke one certificate that are signed with its key: each may go to the CA that issued it, which
 * counts them as those of the vault.
 */
export const revocationsPerHour = 10;

/** Refusals per caller, kind and hour that are recorded in full; further ones are only counted. */
export const refusalsPerHour = 100;

type Counter = Pick<TokenBuckets, 'take'>;

export class KeyLimits {
  readonly #buckets: Readonly<Record<KeyCount, Counter | undefined>>;

  /**
   * `perMinute` limits all requests of a key, 0 limits none, and undefined limits only recorded requests, by
   * `recordPace`, and pages of lists, by `pagePace`. Unless it is 0, renewals are limited by `renewalsPerHour`, and by
   * `recordPace` what an ACME client changes, and exchanges of an enrollment token. Those without a key of the vault
   * are limited in any case.
   */
  constructor(world: World, perMinute: number | undefined) {
    this.#buckets = {
      failures: new TokenBuckets(world, failurePace),
      recordedFailures: new TokenBuckets(world, failurePace),
      requests: perMinute ? new TokenBuckets(world, { burst: perMinute, perMinute }) : undefined,
      records: perMinute === undefined ? new TokenBuckets(world, recordPace) : undefined,
      pages: perMinute === undefined ? new TokenBuckets(world, pagePace) : undefined,
      renewals: perMinute === 0 ? undefined : new HourlyCounts(world, renewalsPerHour),
      changes: perMinute === 0 ? undefined : new TokenBuckets(world, recordPace),
      exchanges: perMinute === 0 ? undefined : new TokenBuckets(world, recordPace),
      recordedExcesses: new TokenBuckets(world, { burst: 1, perMinute: 1 }),
      recordedRefusals: new HourlyCounts(world, refusalsPerHour),
      revocations: new TokenBuckets(world, revocationPace),
      certificateRevocations: new HourlyCounts(world, revocationsPerHour),
    };
  }

  /** Counts an invalid key or enrollment token from this address. Throws `rate_limited` after too many of both. */
  fail(address: string | undefined, what: 'API keys' | 'enrollment tokens' = 'API keys'): void {
    const wait = this.#take('failures', networkOf(address));
    if (wait > 0) throw paused(`Too many invalid ${what} from this address`, wait);
  }

  /**
   * Counts a failure of a known key before it is recorded. Throws `rate_limited` if enough failures were recorded
   * lately.
   */
  failKnown(id: number, address: string | undefined): void {
    const wait = this.#take('recordedFailures', `${id} ${networkOf(address)}`);
    if (wait > 0) throw paused('Too many requests with this invalid API key', wait);
  }

  /** Counts a request with a valid key. Returns the problem if there were too many. */
  limitExceeded(id: number): Problem | undefined {
    const wait = this.#take('requests', String(id));
    return wait > 0 ? paused('Too many requests with this API key', wait) : undefined;
  }

  /** Counts a request before it is recorded. Returns the problem if there were too many. */
  recordExcessOf(id: number): Problem | undefined {
    const wait = this.#take('records', String(id));
    return wait > 0 ? paused('Too many requests with this API key', wait) : undefined;
  }

  /** Counts a page of a list. Returns the problem if there were too many. */
  pageExcessOf(id: number): Problem | undefined {
    const wait = this.#take('pages', String(id));
    return wait > 0 ? paused('Too many pages of lists with this API key', wait) : undefined;
  }

  /** Counts a renewal that a key requests before it is queued. Returns the problem if there were too many. */
  renewalExcessOf(id: number, certificateId: number): Problem | undefined {
    const wait = this.#take('renewals', `${id} ${certificateId}`);
    if (wait === 0) return undefined;
    const what = `This API key requested ${renewalsPerHour} renewals of this certificate in an hour`;
    return paused(what, wait, 'Administrators and "vault certificate renew" can renew it before that.');
  }

  /** Counts a request of an ACME client that changes something. Returns the problem if there were too many. */
  changeExcessOf(acmeClientId: number): Problem | undefined {
    const wait = this.#take('changes', String(acmeClientId));
    return wait > 0 ? paused('Too many requests of this ACME client', wait) : undefined;
  }

  /** Counts an exchange with a valid enrollment token. Returns the problem if there were too many. */
  exchangeExcessOf(enrollmentId: number): Problem | undefined {
    const wait = this.#take('exchanges', String(enrollmentId));
    return wait > 0 ? paused('Too many requests with this enrollment token', wait) : undefined;
  }

  /**
   * Counts a request from this address to revoke a certificate with its key. Returns the problem if there were too
   * many.
   */
  revocationExcessOf(address: string | undefined): Problem | undefined {
    const wait = this.#take('revocations', networkOf(address));
    if (wait === 0) return undefined;
    const what = 'Too many requests without an account to revoke certificates came from this address';
    return paused(
      what,
      wait,
      'An account of the client that ordered a certificate can revoke it before that.',
    );
  }

  /** Counts a request to revoke this version, signed with its key. Returns the problem if there were too many. */
  revocationExcessOfVersion(certificateId: number, version: number): Problem | undefined {
    const wait = this.#take('certificateRevocations', `${certificateId} ${version}`);
    if (wait === 0) return undefined;
    const what = `The key of this certificate signed ${revocationsPerHour} requests to revoke it in an hour`;
    return paused(what, wait, 'Administrators and "vault certificate revoke" can revoke it before that.');
  }

  /** Whether a refusal of this kind is recorded in full, or only counted. */
  howToRecord(kind: string): 'in full' | 'counted' {
    return this.#take('recordedRefusals', kind) === 0 ? 'in full' : 'counted';
  }

  /** Whether to record this rate limit violation of a key; one per minute is recorded. */
  isFirstReport(id: number): boolean {
    return this.#take('recordedExcesses', String(id)) === 0;
  }

  #take(count: KeyCount, name: string): number {
    return this.#buckets[count]?.take(name) ?? 0;
  }
}

function networkOf(address: string | undefined): string {
  return address === undefined ? 'unknown' : neighborhood(address);
}

function paused(what: string, wait: number, hint?: string): Problem {
  return new Problem('rate_limited', {
    detail: `${what}; retry after the time in Retry-After.`,
    ...(hint !== undefined && { hint }),
    retryAfter: Math.ceil(wait / second),
  });
}
