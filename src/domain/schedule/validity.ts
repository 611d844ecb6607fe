/** Whether a certificate is valid yet. */
import { largestSkew } from '../../db/tables/certificates/certificate-statuses.ts';

/** Whether the validity begins later than clocks differ. Times are UTC milliseconds. */
export function isNotYetValid(notBefore: number, now: number): boolean {
  return notBefore > now + largestSkew;
}
