/** Whether a certificate is valid yet. */
import { minute } from '../../base/duration.ts';

/** The clocks of a vault and of a CA differ by less. */
const largestSkew = 5 * minute;

/** Whether the validity begins later than clocks differ. Times are UTC milliseconds. */
export function isNotYetValid(notBefore: number, now: number): boolean {
  return notBefore > now + largestSkew;
}
