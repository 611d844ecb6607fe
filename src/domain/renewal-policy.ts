/** When to renew: one pure function of the facts. Whoever schedules only compares its answer with the time. */
import { hash } from 'node:crypto';
import { day, minute } from '../base/duration.ts';

export type RenewalFacts = {
  /** Validity of the current version, UTC milliseconds. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** Something that differs between versions and stays the same for each, such as the serial: it spreads the moments. */
  readonly seed: string;
  /** Attempts that failed since the last success, and when the last of them ended. */
  readonly failedAttempts: number;
  readonly lastAttemptAt: number | null;
};

const backoffs = [minute, 10 * minute, 100 * minute];

/**
 * The moment (UTC milliseconds) at which to try next: when a third of the lifetime is left, or half where it is shorter
 * than ten days, up to a fiftieth of the lifetime earlier by a jitter of its own. After failures: 1, 10, 100 minutes,
 * then daily after the last attempt, but never waiting more than a twentieth of the lifetime.
 */
export function renewAt({ notBefore, notAfter, seed, failedAttempts, lastAttemptAt }: RenewalFacts): number {
  const lifetime = notAfter - notBefore;
  const left = lifetime < 10 * day ? lifetime / 2 : lifetime / 3;
  const planned = notAfter - left - (lifetime / 50) * fraction(seed);
  if (failedAttempts === 0 || lastAttemptAt === null) return Math.floor(planned);
  const wait = Math.min(backoffs[failedAttempts - 1] ?? day, lifetime / 20);
  return Math.floor(lastAttemptAt + wait);
}

/** A number from 0 to below 1 that is always the same for the same text and looks random across texts. */
function fraction(text: string): number {
  return hash('sha256', text, 'buffer').readUInt32BE() / 2 ** 32;
}
