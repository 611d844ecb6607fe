/**
 * When the certificate of an order should be valid (RFC 8555 §7.4): the dates that the client asks for, within what the
 * issuer permits.
 */
import { formatLifetime, minute } from '../../../base/duration.ts';
import { formatTimestamp, parseTimestamp } from '../../../base/timestamp.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';

/** UTC milliseconds, in whole seconds; undefined for those of the issuer. */
export type OrderValidity = { readonly notBefore: number | undefined; readonly notAfter: number | undefined };

/** How long before now a certificate may start, for clients whose clock is behind. */
const maxPast = 5 * minute;

/**
 * Reads the dates. Throws `malformed` for others than an issuer permits whose certificates live for at most `longest`
 * milliseconds.
 */
export function readValidity(
  written: { readonly notBefore?: string | undefined; readonly notAfter?: string | undefined },
  longest: number,
  now: number,
): OrderValidity {
  const notBefore = readDate('notBefore', written.notBefore);
  const notAfter = readDate('notAfter', written.notAfter);
  if (notBefore !== undefined && notBefore < now - maxPast) {
    throw refused('notBefore', 'is in the past');
  }
  if (notBefore !== undefined && notBefore > now + longest) {
    throw refused(
      'notBefore',
      `is too far in the future; it can be at most ${formatTimestamp(now + longest)}`,
    );
  }
  const start = Math.max(notBefore ?? now, now);
  if (notAfter !== undefined && notAfter <= start)
    throw refused('notAfter', 'is not after the start of the certificate');
  if (notAfter !== undefined && notAfter > start + longest) {
    throw refused(
      'notAfter',
      `is too late; certificates of this issuer are valid for at most ${formatLifetime(longest)}`,
    );
  }
  return { notBefore, notAfter };
}

function readDate(name: string, written: string | undefined): number | undefined {
  if (written === undefined) return undefined;
  const date = parseTimestamp(written);
  if (date === undefined) throw refused(name, 'is not a timestamp such as 2027-01-31T00:00:00Z');
  return Math.floor(date / 1000) * 1000;
}

function refused(name: string, what: string): AcmeProblem {
  return new AcmeProblem('malformed', `The ${name} of the order ${what}.`);
}
