/** Published rate limits of CAs, so that the vault stays under them before a CA has to reject an order. */
import { day, hour } from '../base/duration.ts';

export type IssuanceLimit = { readonly count: number; readonly within: number };

/**
 * Limits by what they count: orders of an account, certificates per set of names or per registered domain, failed
 * validations.
 */
export type PublishedLimits = {
  readonly ordersPerAccount: IssuanceLimit;
  readonly certificatesPerSet: IssuanceLimit;
  readonly certificatesPerDomain: IssuanceLimit;
  readonly failuresPerName: IssuanceLimit;
};

/**
 * By directory. Let's Encrypt: https://letsencrypt.org/docs/rate-limits/ (2026). Orders that name the certificate they
 * replace (RFC 9773) are exempt; orders for a set of names that it issued before count only per set.
 */
const published: Readonly<Record<string, PublishedLimits>> = {
  'https://acme-v02.api.letsencrypt.org/directory': {
    ordersPerAccount: { count: 300, within: 3 * hour },
    certificatesPerSet: { count: 5, within: 7 * day },
    certificatesPerDomain: { count: 50, within: 7 * day },
    failuresPerName: { count: 5, within: hour },
  },
};

/** The limits of the CA with this directory, or undefined for a CA that publishes none. */
export function publishedLimits(directoryUrl: string): PublishedLimits | undefined {
  return Object.hasOwn(published, directoryUrl) ? published[directoryUrl] : undefined;
}
