/** When to renew: one pure function of the facts and the time. Whoever schedules only compares its answer with now. */
import { hash } from 'node:crypto';
import { day, minute } from '../base/duration.ts';

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
  /** The CA asked not to be asked again before this moment. */
  readonly retryAfter: number | null;
};

const backoffs = [minute, 10 * minute, 100 * minute];

/** However long a CA asks to wait: after this it is asked again. */
const longestPause = 7 * day;

/**
 * The moment (UTC milliseconds) at which to try next; one that has passed means now.
 *
 * Without failures: at once where nothing is issued or what is wanted has changed; else when the CA says, or where it
 * says nothing, when a third of the lifetime is left (half where it is shorter than ten days), up to a fiftieth earlier
 * by a jitter of its own; in any case when a twentieth is left. After failures: 1, 10, 100 minutes, then daily, but
 * never more than a twentieth of the lifetime later, unless the CA asked for more.
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

function nextMoment(
  { now, current, failedAttempts, retryAfter }: RenewalFacts,
  lastAttemptAt: number,
): number {
  const longestWait = current === null ? day : lifetimeOf(current) / 20;
  const attemptedAt = Math.min(lastAttemptAt, now);
  const moment = attemptedAt + Math.min(backoffs[failedAttempts - 1] ?? day, longestWait);
  return retryAfter === null ? moment : Math.max(moment, Math.min(retryAfter, attemptedAt + longestPause));
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
 * Whether the fallback issuer is to be asked this time: near the end, where the primary one has failed at least twice, or
 * where nothing has ever been issued and it failed three times. The two then take turns, so that neither's trouble is
 * the end.
 */
export function asksFallback(facts: Pick<RenewalFacts, 'now' | 'current' | 'failedAttempts'>): boolean {
  const { current, failedAttempts } = facts;
  if (current === null) return failedAttempts >= 3 && failedAttempts % 2 === 1;
  return isNearEnd(facts) && failedAttempts >= 2 && failedAttempts % 2 === 0;
}

/** Whether less than a sixth of the lifetime is left, or a quarter where it is shorter than ten days. */
export function isNearEnd({ now, current }: Pick<RenewalFacts, 'now' | 'current'>): boolean {
  if (current === null) return false;
  const lifetime = lifetimeOf(current);
  return now >= current.notAfter - (lifetime < 10 * day ? lifetime / 4 : lifetime / 6);
}
