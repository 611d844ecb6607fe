/** When to renew, and which issuer to ask: pure functions of the facts and the time. A scheduler only compares with now. */
import { hash } from 'node:crypto';
import { day, hour, minute } from '../../base/duration.ts';

/** The current version, as far as it matters when to replace it. Times are UTC milliseconds. */
export type CurrentFacts = {
  readonly notBefore: number;
  readonly notAfter: number;
  /** When the vault got it, by the vault's clock. */
  readonly madeAt: number;
  /** Something that differs between versions and stays the same for each, such as the serial: it spreads the moments. */
  readonly seed: string;
};

export type RenewalFacts = {
  readonly now: number;
  /** null where nothing has been issued yet. */
  readonly current: CurrentFacts | null;
  /** The certificate shall have other names or another type of key than its current version. */
  readonly changed: boolean;
  /** The moment chosen in the CA's renewal window (RFC 9773), where it has told one. */
  readonly ariMoment: number | null;
  /** Attempts that failed since the last success, and when the last of them ended. */
  readonly failedAttempts: number;
  readonly lastAttemptAt: number | null;
  /** Retry-After of the issuer, as a moment. */
  readonly retryAfter: number | null;
  /** The same of the fallback issuer; undefined where there is none. */
  readonly fallback?: { readonly retryAfter: number | null } | undefined;
};

/** Which of a certificate's issuers. */
export type Turn = 'primary' | 'fallback';

const backoffs = [minute, 10 * minute, 100 * minute];

/** However long a CA asks to wait: after this it is asked again. */
export const longestPause = 7 * day;

/** Before every other moment, also those of clocks that are wrong. */
const never = Number.NEGATIVE_INFINITY;

/** In an emergency, a CA that sent Retry-After is asked anyway, but no more often than this. */
const emergencyPause = hour;

/**
 * The moment (UTC milliseconds) at which to try next; one that has passed means now.
 *
 * Without failures: at once where nothing is issued or what is wanted has changed; else when the CA says, or where it
 * says nothing, when a third of the lifetime is left (half where it is shorter than ten days), up to a fiftieth earlier
 * by a jitter of its own; in any case when a twentieth is left. After failures: 1, 10, 100 minutes, then daily, but
 * never more than a twentieth of the lifetime later, unless the issuer whose turn it is asked for more. Such a wish is
 * kept until the fallback may be asked instead, and until a twentieth of the lifetime is left; from then on an issuer
 * that asked to wait is asked once an hour at most.
 *
 * Clocks jump. An attempt in the future is taken to have happened now, and a version is not replaced within a twentieth
 * of its lifetime for its age alone, so that a wrong clock does not use up the CA's patience.
 */
export function renewAt(facts: RenewalFacts): number {
  const { failedAttempts, lastAttemptAt } = facts;
  const hasFailed = failedAttempts > 0 && lastAttemptAt !== null;
  return Math.floor(hasFailed ? nextMoment(facts, lastAttemptAt) : firstMoment(facts));
}

function firstMoment({ now, current, changed, ariMoment }: RenewalFacts): number {
  if (current === null || changed) return now;
  const lifetime = lifetimeOf(current);
  const emergency = current.notAfter - lifetime / 20;
  const byAge = Math.max(
    Math.min(ariMoment === null ? ownMoment(current) : Number.POSITIVE_INFINITY, emergency),
    issuedAt(current, now) + lifetime / 20,
  );
  return ariMoment === null ? byAge : Math.min(ariMoment, byAge);
}

function nextMoment(facts: RenewalFacts, lastAttemptAt: number): number {
  const { now, current, failedAttempts } = facts;
  const longestWait = current === null ? day : lifetimeOf(current) / 20;
  const attemptedAt = Math.min(lastAttemptAt, now);
  const soonest = attemptedAt + Math.min(backoffs[failedAttempts - 1] ?? day, longestWait);
  const emergency = current === null ? Number.POSITIVE_INFINITY : current.notAfter - lifetimeOf(current) / 20;
  const latest = Math.max(soonest, emergency, attemptedAt + emergencyPause);
  const limit = Math.min(attemptedAt + longestPause, latest);
  const primaryAt = Math.max(soonest, Math.min(facts.retryAfter ?? never, limit));
  if (facts.fallback === undefined || primaryAt === soonest) return primaryAt;
  const fallbackFrom = Math.max(soonest, fallbackPermittedAt(facts, soonest));
  return Math.min(primaryAt, Math.max(fallbackFrom, Math.min(facts.fallback.retryAfter ?? never, limit)));
}

/** The first moment from `soonest` on at which the fallback may be asked in place of an issuer that asked to wait. */
function fallbackPermittedAt({ current }: RenewalFacts, soonest: number): number {
  return current === null ? soonest : Math.max(soonest, Math.ceil(nearEndOf(current)));
}

function ownMoment(current: CurrentFacts): number {
  const lifetime = lifetimeOf(current);
  const left = lifetime < 10 * day ? lifetime / 2 : lifetime / 3;
  return current.notAfter - left - (lifetime / 50) * fraction(current.seed);
}

/**
 * When the vault got the version. A clock that was ahead then does not tell; it was when the version began at the
 * earliest. To take it for now would put a renewal off again whenever it is planned.
 */
function issuedAt({ madeAt, notBefore }: CurrentFacts, now: number): number {
  return madeAt <= now ? madeAt : Math.min(notBefore, now);
}

function lifetimeOf({ notBefore, notAfter }: CurrentFacts): number {
  return notAfter - notBefore;
}

/** A number from 0 to below 1 that is always the same for the same text and looks random across texts. */
function fraction(text: string): number {
  return hash('sha256', text, 'buffer').readUInt32BE() / 2 ** 32;
}

/**
 * Which issuer to ask now. The fallback has its turns near the end, where the primary one has failed at least twice, or
 * where nothing has ever been issued and it failed three times: the two then alternate, so that one issuer's trouble
 * does not decide. Where the one whose turn it is wants to wait and the other does not, the other is asked; near the end
 * and where nothing has been issued, this needs no failures.
 */
export function turnOf(facts: Omit<RenewalFacts, 'changed' | 'ariMoment' | 'lastAttemptAt'>): Turn {
  const { now, current, retryAfter, fallback } = facts;
  if (fallback === undefined) return 'primary';
  const waits = { primary: (retryAfter ?? 0) > now, fallback: (fallback.retryAfter ?? 0) > now };
  const turn = asksFallback(facts) ? 'fallback' : 'primary';
  const other = turn === 'primary' ? 'fallback' : 'primary';
  const mayChange = turn === 'fallback' || current === null || isNearExpiry(facts);
  return waits[turn] && !waits[other] && mayChange ? other : turn;
}

function asksFallback(facts: Pick<RenewalFacts, 'now' | 'current' | 'failedAttempts'>): boolean {
  const { current, failedAttempts } = facts;
  if (current === null) return failedAttempts >= 3 && failedAttempts % 2 === 1;
  return isNearExpiry(facts) && failedAttempts >= 2 && failedAttempts % 2 === 0;
}

/** Whether less than a sixth of the lifetime is left, or a quarter where it is shorter than ten days. */
export function isNearExpiry({ now, current }: Pick<RenewalFacts, 'now' | 'current'>): boolean {
  return current !== null && now >= nearEndOf(current);
}

/** The moment at which half of what was left when the renewal became due is gone. */
function nearEndOf({ notBefore, notAfter }: Pick<CurrentFacts, 'notBefore' | 'notAfter'>): number {
  const lifetime = notAfter - notBefore;
  return notAfter - (lifetime < 10 * day ? lifetime / 4 : lifetime / 6);
}

/** After so many failures in a row a renewal no longer goes before others that are as urgent. */
const manyFailures = 3;

/**
 * The rank of a renewal among those that wait for the same issuer, as a moment: the earliest is taken up first. It is when
 * the end is near, and at the latest now where someone waits for the result or nothing was ever issued; one that keeps
 * failing counts from now, so that certificates that can be renewed go before it.
 */
export function urgentAt(
  facts: Pick<RenewalFacts, 'now' | 'current' | 'changed' | 'failedAttempts'>,
  requestedBy: 'person' | 'schedule',
): number {
  const { now, current, changed, failedAttempts } = facts;
  const nearEnd = current === null ? now : nearEndOf(current);
  const isAwaited = requestedBy === 'person' || changed;
  const moment = isAwaited ? Math.min(now, nearEnd) : nearEnd;
  return Math.floor(failedAttempts >= manyFailures ? Math.max(now, moment) : moment);
}
