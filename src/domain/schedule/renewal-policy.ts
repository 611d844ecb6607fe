/**
 * When to renew and with which issuer: pure functions of the facts and the time. The scheduler only compares with now.
 */
import { hash } from 'node:crypto';
import { day, hour, minute } from '../../base/duration.ts';
import { isNotYetValid } from './validity.ts';

/** The facts about the current version. Times are UTC milliseconds. */
export type CurrentFacts = {
  readonly notBefore: number;
  readonly notAfter: number;
  /** When the vault stored the version, by its own clock. */
  readonly madeAt: number;
  /** Unique and stable per version, such as the serial. It seeds the jitter. */
  readonly seed: string;
  /** Whether the private CA dated it, by the clock of the vault. */
  readonly isOwn?: boolean | undefined;
};

export type RenewalFacts = {
  readonly now: number;
  /** null if nothing has been issued yet. */
  readonly current: CurrentFacts | null;
  /** Whether names or key type were changed since the current version. */
  readonly changed: boolean;
  /** The time chosen within the CA's renewal window (RFC 9773), if it has one. */
  readonly ariMoment: number | null;
  /** Failed attempts since the last success, and when the last one ended. */
  readonly failedAttempts: number;
  readonly lastAttemptAt: number | null;
  /** Retry-After of the issuer, as a time. */
  readonly retryAfter: number | null;
  /** The same for the fallback issuer; undefined if there is none. */
  readonly fallback?: { readonly retryAfter: number | null } | undefined;
};

/** One of the two issuers of a certificate. */
export type Turn = 'primary' | 'fallback';

const backoffs = [minute, 10 * minute, 100 * minute];

/** The longest Retry-After that is obeyed. */
export const maxPause = 7 * day;

/** Earlier than any other time. */
const never = Number.NEGATIVE_INFINITY;

/** In an emergency the vault ignores Retry-After and retries hourly, but contacts the CA no more often than this. */
const emergencyPause = hour;

/**
 * The time (UTC milliseconds) of the next attempt; a time in the past means now.
 *
 * Without failures: now if nothing has been issued or the certificate was changed; otherwise the time in the CA's
 * renewal window, or without one when a third of the lifetime is left (half if it is shorter than ten days), up to a
 * fiftieth earlier by a stable jitter; at the latest when a twentieth is left. After failures: 1, 10, 100 minutes, then
 * daily, but at most a twentieth of the lifetime, unless the issuer sent a longer Retry-After. That is obeyed until the
 * fallback may be used instead, or until a twentieth of the lifetime is left; from then on, also after the expiry, the
 * issuer is contacted once an hour, up to a tenth later by the jitter.
 *
 * A version that the private CA dated by a clock that was ahead is due now; that of another CA shows that this clock is
 * behind.
 *
 * Clocks jump. An attempt in the future counts as one made now, and a version is not replaced for its age alone within
 * the first twentieth of its lifetime, so that a wrong clock does not exhaust the rate limits of the CA.
 */
export function renewAt(facts: RenewalFacts): number {
  const { failedAttempts, lastAttemptAt } = facts;
  const hasFailed = failedAttempts > 0 && lastAttemptAt !== null;
  return Math.floor(hasFailed ? nextMoment(facts, lastAttemptAt) : firstMoment(facts));
}

function firstMoment({ now, current, changed, ariMoment }: RenewalFacts): number {
  if (current === null || changed || isFromFuture(current, now)) return now;
  const lifetime = lifetimeOf(current);
  const emergency = current.notAfter - lifetime / 20;
  const byAge = Math.max(
    Math.min(ariMoment === null ? scheduledMoment(current) : Number.POSITIVE_INFINITY, emergency),
    issuedAt(current, now) + lifetime / 20,
  );
  return ariMoment === null ? byAge : Math.min(ariMoment, byAge);
}

function isFromFuture({ isOwn, notBefore, madeAt }: CurrentFacts, now: number): boolean {
  return isOwn === true && madeAt > now && isNotYetValid(notBefore, now);
}

function nextMoment(facts: RenewalFacts, lastAttemptAt: number): number {
  const { now, current, failedAttempts } = facts;
  const maxWait = current === null ? day : lifetimeOf(current) / 20;
  const attemptedAt = Math.min(lastAttemptAt, now);
  const emergency = current === null ? Number.POSITIVE_INFINITY : current.notAfter - lifetimeOf(current) / 20;
  const hourly = attemptedAt + emergencyPause * (1 + fraction(current?.seed ?? '') / 10);
  const soonest = Math.min(
    attemptedAt + Math.min(backoffs[failedAttempts - 1] ?? day, maxWait),
    Math.max(emergency, hourly),
  );
  const latest = Math.max(soonest, emergency, attemptedAt + emergencyPause);
  const limit = Math.min(attemptedAt + maxPause, latest);
  const primaryAt = Math.max(soonest, Math.min(facts.retryAfter ?? never, limit));
  if (facts.fallback === undefined || primaryAt === soonest) return primaryAt;
  const fallbackFrom = Math.max(soonest, fallbackPermittedAt(facts, soonest));
  return Math.min(primaryAt, Math.max(fallbackFrom, Math.min(facts.fallback.retryAfter ?? never, limit)));
}

/** The earliest time, from `soonest` on, at which the fallback may replace an issuer that sent Retry-After. */
function fallbackPermittedAt({ current }: RenewalFacts, soonest: number): number {
  return current === null ? soonest : Math.max(soonest, Math.ceil(nearExpiryAt(current)));
}

function scheduledMoment(current: CurrentFacts): number {
  const { start, end } = defaultWindow(current);
  return end - (end - start) * fraction(current.seed);
}

/** Within which a certificate is renewed for its age, without a window of its CA. */
export function defaultWindow(current: Pick<CurrentFacts, 'notBefore' | 'notAfter'>): {
  readonly start: number;
  readonly end: number;
} {
  const lifetime = lifetimeOf(current);
  const end = current.notAfter - (lifetime < 10 * day ? lifetime / 2 : lifetime / 3);
  return { start: end - lifetime / 50, end };
}

/**
 * When the vault stored the version. A time in the future comes from a wrong clock; then notBefore is the earliest
 * possible time. Using now instead would postpone the renewal each time it is scheduled.
 */
function issuedAt({ madeAt, notBefore }: CurrentFacts, now: number): number {
  return madeAt <= now ? madeAt : Math.min(notBefore, now);
}

function lifetimeOf({ notBefore, notAfter }: Pick<CurrentFacts, 'notBefore' | 'notAfter'>): number {
  return notAfter - notBefore;
}

/** A number from 0 to below 1, derived from a hash of the text. */
function fraction(text: string): number {
  return hash('sha256', text, 'buffer').readUInt32BE() / 2 ** 32;
}

/**
 * Which issuer to use now. The fallback takes turns with the primary issuer near the expiry after two failures, or
 * after three failures if nothing has been issued yet. If the issuer whose turn it is asked to wait and the other did
 * not, the other one is used; near the expiry, and if nothing has been issued, this needs no failures.
 */
export function turnOf(facts: Omit<RenewalFacts, 'changed' | 'ariMoment' | 'lastAttemptAt'>): Turn {
  const { now, current, retryAfter, fallback } = facts;
  if (fallback === undefined) return 'primary';
  const waits = { primary: (retryAfter ?? 0) > now, fallback: (fallback.retryAfter ?? 0) > now };
  const turn = isFallbackTurn(facts) ? 'fallback' : 'primary';
  const other = turn === 'primary' ? 'fallback' : 'primary';
  const mayChange = turn === 'fallback' || current === null || isNearExpiry(facts);
  return waits[turn] && !waits[other] && mayChange ? other : turn;
}

function isFallbackTurn(facts: Pick<RenewalFacts, 'now' | 'current' | 'failedAttempts'>): boolean {
  const { current, failedAttempts } = facts;
  if (current === null) return failedAttempts >= 3 && failedAttempts % 2 === 1;
  return isNearExpiry(facts) && failedAttempts >= 2 && failedAttempts % 2 === 0;
}

/** Whether less than a sixth of the lifetime is left, or a quarter where it is shorter than ten days. */
export function isNearExpiry({ now, current }: Pick<RenewalFacts, 'now' | 'current'>): boolean {
  return current !== null && now >= nearExpiryAt(current);
}

/** The time halfway between the scheduled renewal and the expiry. */
function nearExpiryAt({ notBefore, notAfter }: Pick<CurrentFacts, 'notBefore' | 'notAfter'>): number {
  const lifetime = notAfter - notBefore;
  return notAfter - (lifetime < 10 * day ? lifetime / 4 : lifetime / 6);
}

/** After this many failures in a row, a renewal yields to others that are equally urgent. */
const manyFailures = 3;

/**
 * The rank of a renewal among those that wait for the same issuer, as a time: the earliest runs first. It is the time
 * at which the expiry is near, but at the latest now if a person waits for the result or nothing has been issued. A
 * renewal that keeps failing ranks from now on, so that others go first.
 */
export function urgentAt(
  facts: Pick<RenewalFacts, 'now' | 'current' | 'changed' | 'failedAttempts'>,
  requestedBy: 'person' | 'schedule',
): number {
  const { now, current, changed, failedAttempts } = facts;
  const nearExpiry = current === null ? now : nearExpiryAt(current);
  const isAwaited = requestedBy === 'person' || changed;
  const moment = isAwaited ? Math.min(now, nearExpiry) : nearExpiry;
  return Math.floor(failedAttempts >= manyFailures ? Math.max(now, moment) : moment);
}
