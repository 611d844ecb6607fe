/** Settings that secret files of DNS providers have in common, with messages for whoever wrote the file. */
import { z } from 'zod';
import { isSecureUrl } from '../../base/secure-url.ts';

/** A text of visible ASCII, such as a token or a key id; `what` ends "is missing:" and "must be". */
export const credential = (what: string) =>
  z
    .string({ error: `is missing or not a string: it must be ${what}` })
    .regex(/^[\x21-\x7e]+$/, { error: `must be ${what}, without spaces or line breaks` });

/** Where an API is found. Tokens go there, so it must be https, except on this very machine. */
export const apiUrl = z.string({ error: 'must be a URL' }).refine(isApiUrl, {
  error: 'must be an https:// URL without user, query and fragment (http:// only for localhost)',
});

/** Where the APIs are that the vault knows. */
const publicApis: ReadonlySet<string> = new Set([
  ...['api.cloudflare.com', 'route53.amazonaws.com', 'management.azure.com', 'login.microsoftonline.com'],
  ...['dns.googleapis.com', 'oauth2.googleapis.com', 'api.digitalocean.com', 'api.hetzner.cloud'],
  ...['eu.api.ovh.com', 'ca.api.ovh.com', 'api.us.ovhcloud.com', 'desec.io'],
]);

/**
 * Whether what answers at the URL is the provider itself, whose words may be shown. Behind an address that was configured
 * may be anything, and a session must not read there.
 */
export function isPublicApi(url: string): boolean {
  const { protocol, host } = new URL(url);
  return protocol === 'https:' && publicApis.has(host);
}

function isApiUrl(text: string): boolean {
  return isSecureUrl(text) && new URL(text).search === '';
}
