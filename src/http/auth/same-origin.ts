/**
 * Whether a request comes from a page of the vault itself. SameSite cookies alone would let a sibling subdomain post;
 * browsers report the origin of a request, and pages cannot change it.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { Problem } from '../../base/problem.ts';

/** `unsaid` comes from programs; browsers omit the headers only for GET and HEAD. */
export type Provenance = 'same-origin' | 'elsewhere' | 'unsaid';

/**
 * Reads `Sec-Fetch-Site` (Fetch Metadata) or, in browsers without it, `Origin` (RFC 6454 §7), which must match the
 * public URL of the vault or, if that is not certain, the host of the request.
 */
export function provenanceOf(headers: IncomingHttpHeaders, certainUrl: string | undefined): Provenance {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin' ? 'same-origin' : 'elsewhere';
  const { origin, host } = headers;
  if (origin === undefined) return 'unsaid';
  const url = URL.parse(origin);
  if (url === null || url.origin !== origin) return 'elsewhere';
  // Behind an unknown proxy for HTTPS, only the host is known.
  const isOurs =
    certainUrl === undefined ? hostOf(url.protocol, host) === url.host : originOf(certainUrl) === origin;
  return isOurs ? 'same-origin' : 'elsewhere';
}

/** Whether a method may change data (RFC 9110 §9.2.1). */
export function changesSomething(method: string): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

/** The response to a change from another site. */
export function crossSite(): Problem {
  return new Problem('forbidden', {
    detail: 'Session cookies can change data only from the console of this vault.',
    hint: 'Use an API key, or send an Origin header with the address of the vault.',
  });
}

/** As in URLs: lower case and without the default port of the scheme. */
function hostOf(protocol: string, host: string | undefined): string | undefined {
  return host === undefined ? undefined : URL.parse(`${protocol}//${host}`)?.host;
}

function originOf(url: string): string | undefined {
  return URL.parse(url)?.origin;
}
