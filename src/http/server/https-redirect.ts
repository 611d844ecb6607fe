/** The plain HTTP listener of a vault with HTTPS: redirects, unless a secret may have been sent. */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../../base/problem.ts';
import { problemReply, type WholeReply } from '../request/reply.ts';

/** `httpsPort` is that of the HTTPS listener, for clients whose Host header has no port. */
export type RedirectTarget = { readonly publicUrl: string | undefined; readonly httpsPort: number };

/**
 * A redirect for GET and HEAD without credentials. Anything else was already sent unencrypted, and a client that
 * follows redirects would do so again: it gets an error, and nothing is done.
 */
export function redirectReply(
  { publicUrl, httpsPort }: RedirectTarget,
  request: IncomingMessage,
): WholeReply {
  const target = publicUrl ?? httpsUrl(request.headers.host, httpsPort);
  const where = target === undefined ? 'HTTPS' : target;
  if (request.headers.authorization !== undefined) {
    return refusal(
      'This address serves plain HTTP: the credentials in this request were sent unencrypted.',
      `Revoke the API key, create a new one, and use it only with ${where}.`,
    );
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return refusal('This address serves plain HTTP: the request was sent unencrypted.', `Use ${where}.`);
  }
  if (target === undefined) return refusal('This address serves plain HTTP.', 'Use HTTPS.');
  return {
    status: 308,
    headers: { Location: `${target}${request.url}`, 'Cache-Control': 'no-store' },
    body: '',
  };
}

/** The HTTP response to plain HTTP on the HTTPS port. */
export const plainOnHttps = new Problem('invalid_request', {
  detail: 'This port requires HTTPS: the request was sent unencrypted, over plain HTTP.',
  hint: 'Use https://. If the request contained an API key, revoke the key and create a new one.',
});

function refusal(detail: string, hint: string): WholeReply {
  return problemReply(new Problem('invalid_request', { detail, hint }));
}

/** Undefined if the host is missing or invalid. */
function httpsUrl(host: string | undefined, port: number): string | undefined {
  const name = /^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d+)?$/.exec(host ?? '')?.[1];
  if (name === undefined) return undefined;
  return port === 443 ? `https://${name}` : `https://${name}:${port}`;
}
