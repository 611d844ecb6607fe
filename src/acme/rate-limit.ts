/** Which limit a CA applies with 429 or 503: parsed from known error texts, else the narrowest one. */
import type { AcmeError } from './acme-error.ts';

/**
 * - `service`: the CA is overloaded (503).
 * - `account`: everything that the account orders.
 * - `names`: certificates for exactly this set of names.
 * - `domain`: certificates for names under this registered domain.
 * - `certificate`: an unnamed limit, treated as one on this certificate alone.
 */
export type RateLimit =
  | { readonly scope: 'service' | 'account' | 'names' | 'certificate' }
  | { readonly scope: 'domain'; readonly domain: string };

/** Messages of Boulder, the software of Let's Encrypt; an older version says domains instead of identifiers. */
const sameSet =
  /^too many certificates \(\d{1,9}\) already issued for this exact set of (identifiers|domains)\b/;
const sameDomain = /^too many certificates \(\d{1,9}\) already issued for "([^"\s]{1,253})"/;
const sameAccount = /^too many new orders \(\d{1,9}\) from this account\b/;

/** The limit that was exceeded, or undefined if the CA rejected the request for another reason. */
export function rateLimitOf({ status, type, problem }: AcmeError): RateLimit | undefined {
  if (status === 503) return { scope: 'service' };
  if (status !== 429 && type !== 'rateLimited') return undefined;
  const detail = (problem?.detail ?? '').replace(/^Error creating new order :: /, '');
  if (sameSet.test(detail)) return { scope: 'names' };
  if (sameAccount.test(detail)) return { scope: 'account' };
  const domain = sameDomain.exec(detail)?.[1]?.toLowerCase();
  return domain === undefined ? { scope: 'certificate' } : { scope: 'domain', domain };
}
