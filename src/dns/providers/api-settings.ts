/** Settings shared by secret files of DNS providers, with error messages for their authors. */
import { z } from 'zod';
import { isSecureUrl } from '../../base/secure-url.ts';

/** A string of visible ASCII characters, such as a token or a key id; `what` follows "must be". */
export const credential = (what: string) =>
  z
    .string({ error: `is missing or not a string: it must be ${what}` })
    .regex(/^[\x21-\x7e]+$/, { error: `must be ${what}, without spaces or line breaks` });

/** The URL of an API. Tokens are sent there, so it must be https, except on localhost. */
export const apiUrl = z.string({ error: 'must be a URL' }).refine(isApiUrl, {
  error: 'must be an https:// URL without user, query and fragment (http:// only for localhost)',
});

/** The built-in API URLs. */
const publicApis: ReadonlySet<string> = new Set([
  ...['api.cloudflare.com', 'route53.amazonaws.com', 'management.azure.com', 'login.microsoftonline.com'],
  ...['dns.googleapis.com', 'oauth2.googleapis.com', 'api.digitalocean.com', 'api.hetzner.cloud'],
  ...['eu.api.ovh.com', 'ca.api.ovh.com', 'api.us.ovhcloud.com', 'desec.io'],
]);

/**
 * Whether the URL is that of the provider itself, whose error texts may be shown. A configured URL may lead to any
 * server, whose responses must not be readable through the vault.
 */
export function isPublicApi(url: string): boolean {
  const { protocol, host } = new URL(url);
  return protocol === 'https:' && publicApis.has(host);
}

function isApiUrl(text: string): boolean {
  return isSecureUrl(text) && new URL(text).search === '';
}
