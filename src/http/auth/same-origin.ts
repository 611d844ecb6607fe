/**
 * Whether a request comes from a page of the vault itself. SameSite cookies alone would let a sibling subdomain post;
 * browsers say where a request comes from, and pages cannot change what they say.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { Problem } from '../../base/problem.ts';

/** `unsaid` is what programs send, and browsers never for anything but GET and HEAD. */
export type Provenance = 'same-origin' | 'elsewhere' | 'unsaid';

/**
 * What `Sec-Fetch-Site` (Fetch Metadata) says or, where a browser does not send it, `Origin` (RFC 6454 §7): that has to
 * be that of the URL by which clients find the vault or, where that is not certain, the host's that it was sent to.
 */
export function provenanceOf(headers: IncomingHttpHeaders, certainUrl: string | undefined): Provenance {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin' ? 'same-origin' : 'elsewhere';
  const { origin, host } = headers;
  if (origin === undefined) return 'unsaid';
  const url = URL.parse(origin);
  if (url === null || url.origin !== origin) return 'elsewhere';
  // Behind an unknown proxy that speaks HTTPS only the host is known.
  const isOurs =
    certainUrl === undefined ? hostOf(url.protocol, host) === url.host : originOf(certainUrl) === origin;
  return isOurs ? 'same-origin' : 'elsewhere';
}

/** Whether a method may change something (RFC 9110 §9.2.1). */
export function changesSomething(method: string): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

/** The answer to a change that was asked for from elsewhere. */
export function crossSite(): Problem {
  return new Problem('forbidden', {
    detail: 'Session cookies can change data only from the console of this vault.',
    hint: 'Use an API key, or send an Origin header with the address of the vault.',
  });
}

/** As URLs have it: in lower case and without the scheme's own port. */
function hostOf(protocol: string, host: string | undefined): string | undefined {
  return host === undefined ? undefined : URL.parse(`${protocol}//${host}`)?.host;
}

function originOf(url: string): string | undefined {
  return URL.parse(url)?.origin;
}
