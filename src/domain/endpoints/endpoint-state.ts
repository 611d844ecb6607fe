/** The state of an endpoint, derived from the clock and what was served when it was last checked, never stored. */
import { day, hour, minute } from '../../base/duration.ts';

/** In the order of their precedence. */
export const endpointStates = [
  ...(['unreachable', 'unchecked', 'unknown', 'outdated', 'untrusted', 'expiring', 'current'] as const),
] as const;

export type EndpointState = (typeof endpointStates)[number];

/** What was served; all are null before the first check that succeeded. */
export type ServedFacts = {
  readonly fingerprint_sha256: string | null;
  /** The version of the endpoint's certificate; null for another certificate. */
  readonly version: number | null;
  readonly not_before: number | null;
  readonly not_after: number | null;
  /** Why a client would reject it, apart from its expiry. */
  readonly problem: string | null;
};

export type EndpointFacts = ServedFacts & {
  /** null for an endpoint that is only watched. */
  readonly certificate_id: number | null;
  /** Failed checks in a row. */
  readonly failures: number;
  readonly current_version: number | null;
  /** When the vault got the current version, UTC milliseconds as all times here. */
  readonly current_since: number | null;
};

/** One failed check may be a restart of the server: the second in a row makes it unreachable. */
export const failuresBeforeUnreachable = 2;

/** How long clients may take to install a new version: those of `install.sh` run once a day. */
export const rolloutTime = day + hour;

/** From then on a served version that is not the current one is outdated. */
export function outdatedAt({ not_before, not_after }: ServedFacts, currentSince: number): number {
  const lifetime = not_before === null || not_after === null ? rolloutTime : not_after - not_before;
  return currentSince + Math.min(rolloutTime, lifetime / 4);
}

/** What a person must renew is announced in the last quarter of its lifetime, but not earlier than this. */
const longestWarning = 30 * day;

/** From then on a certificate that is only watched is expiring. */
export function expiringAt(notBefore: number, notAfter: number): number {
  return notAfter - Math.min(longestWarning, (notAfter - notBefore) / 4);
}

/** The first that applies, in the order of `endpointStates`. */
export function endpointState(facts: EndpointFacts, now: number): EndpointState {
  const { failures, fingerprint_sha256: fingerprint, not_before: begin, not_after: end } = facts;
  const isOwn = facts.certificate_id !== null;
  if (failures >= failuresBeforeUnreachable) return 'unreachable';
  if (fingerprint === null || begin === null || end === null) {
    return failures === 0 ? 'unchecked' : 'unreachable';
  }
  if (isOwn) {
    const { version, current_version: current, current_since: since } = facts;
    if (version === null) return 'unknown';
    const isOlder = current !== null && since !== null && version < current;
    if (isOlder && now >= outdatedAt(facts, since)) return 'outdated';
  }
  if (facts.problem !== null) return 'untrusted';
  // The vault warns of its own certificates before they expire.
  return now >= (isOwn ? end : expiringAt(begin, end)) ? 'expiring' : 'current';
}

/** After a failed check, and until an older version is replaced. */
const soon = minute;

/** Between two checks of an endpoint that is unreachable, at most. */
const unreachableEvery = 10 * minute;

/**
 * The time until the next check. An older version is looked for more and more rarely as time passes; `interval` is what
 * the endpoint is set to.
 */
export function untilNextCheck(facts: EndpointFacts, interval: number, now: number): number {
  if (facts.failures > 0) {
    return Math.min(interval, facts.failures < failuresBeforeUnreachable ? soon : unreachableEvery);
  }
  const { version, current_version: current, current_since: since } = facts;
  const isOlder = version !== null && current !== null && since !== null && version < current;
  return isOlder ? Math.min(interval, Math.max(soon, (now - since) / 2)) : interval;
}
