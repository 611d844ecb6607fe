/** What proves control of a name (RFC 8555 §8, draft-ietf-acme-dns-persist): computed here, published elsewhere. */
import { createHash } from 'node:crypto';
import type { Secret } from '../base/secret.ts';
import { thumbprint } from './account-key.ts';
import { AcmeError } from './acme-error.ts';

const tokenPattern = /^[A-Za-z0-9_-]{1,512}$/;
const hostPattern = /^[A-Za-z0-9.-]{1,253}$/;
/** What a CAA value may hold (RFC 8659 §4.2); `;` would begin another parameter. */
const valuePattern = /^[\x21-\x3a\x3c-\x7e]{1,1000}$/;

/**
 * The key authorization (§8.1). Throws AcmeError `protocol` for a token that is not base64url (§8.3): it becomes part of a
 * path and must not lead elsewhere.
 */
export async function keyAuthorization(token: string, accountKey: Secret): Promise<string> {
  if (!tokenPattern.test(token)) {
    throw new AcmeError(
      'protocol',
      `the CA sent a challenge token that is not base64url: ${token.slice(0, 100)}`,
    );
  }
  return `${token}.${await thumbprint(accountKey)}`;
}

/** The value of the TXT record `_acme-challenge` (§8.4). */
export function dns01Value(keyAuthorization: string): string {
  return createHash('sha256').update(keyAuthorization).digest('base64url');
}

/**
 * The value of the TXT record `_validation-persist`, for one of the challenge's issuer-domain-names and its accounturi; with
 * `wildcard` it also holds for the names below. Throws AcmeError `protocol` where they would break the record.
 */
export function dnsPersistValue(issuerDomain: string, accountUri: string, wildcard: boolean): string {
  if (!hostPattern.test(issuerDomain) || !valuePattern.test(accountUri)) {
    const given = JSON.stringify([issuerDomain, accountUri]).slice(0, 300);
    throw new AcmeError('protocol', `the CA sent values that do not fit into a TXT record: ${given}`);
  }
  return `${issuerDomain}; accounturi=${accountUri}${wildcard ? '; policy=wildcard' : ''}`;
}
