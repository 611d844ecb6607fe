/** The status of a certificate, derived from the clock and its current version, never stored. */
import { day } from '../../base/duration.ts';
import { isNotYetValid } from '../schedule/validity.ts';

export const certificateStatuses = [
  'pending',
  'valid',
  'expiring',
  'expired',
  'not_yet_valid',
  'disabled',
] as const;

export type CertificateStatus = (typeof certificateStatuses)[number];

type Validity = { readonly not_before: number; readonly not_after: number };

/**
 * `pending` without a version, `expired` from `not_after` on, `expiring` in the last quarter of the lifetime (at most
 * 30 days): after a renewal was due, so that it signals a problem, and early enough to fix it. `not_yet_valid` where
 * the validity begins later: a clock was or is wrong. `disabled` takes precedence.
 */
export function certificateStatus(
  current: Validity | null,
  now: number,
  isDisabled = false,
): CertificateStatus {
  if (isDisabled) return 'disabled';
  if (current === null) return 'pending';
  if (now >= current.not_after) return 'expired';
  if (isNotYetValid(current.not_before, now)) return 'not_yet_valid';
  const lifetime = current.not_after - current.not_before;
  return now >= current.not_after - Math.min(lifetime / 4, 30 * day) ? 'expiring' : 'valid';
}
