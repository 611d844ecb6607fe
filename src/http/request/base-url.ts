/**
 * The origin and target of a request: the client's address, and the URL that the client used for the vault. Everything
 * that depends on them (audit log, cookies, links, same-origin checks) uses this file.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Problem } from '../../base/problem.ts';
import type { IpNetwork } from '../../net/ip-network.ts';
import { clientOf, type Scheme } from './client-address.ts';

/** The relevant part of the server's context. */
export type Place = {
  /** The public URL of the vault, without a trailing slash; taken from the request if undefined. */
  readonly publicUrl: string | undefined;
  readonly trustedProxies: readonly IpNetwork[];
};

export type ClientOrigin = {
  readonly ip: string | undefined;
  /** The base of URLs for this client, without a trailing slash; empty if its Host header is invalid. */
  readonly baseUrl: string;
  /** The same if its scheme is certain, otherwise undefined: an unknown proxy may use HTTPS. */
  readonly certainUrl: string | undefined;
};

/** Cached for a connection without forwarding proxies: its next request usually has the same host. */
const remembered = new WeakMap<Socket, { readonly host: string | undefined; readonly at: ClientOrigin }>();

/** Throws `invalid_request` if the headers of trusted proxies contradict each other about the client. */
export function clientOriginOf(request: IncomingMessage, place: Place): ClientOrigin {
  const { socket, headers } = request;
  if (isForwarded(headers)) return computeOrigin(request, place);
  const last = remembered.get(socket);
  if (last !== undefined && last.host === headers.host) return last.at;
  const at = computeOrigin(request, place);
  remembered.set(socket, { host: headers.host, at });
  return at;
}

function isForwarded(headers: IncomingHttpHeaders): boolean {
  return (
    headers['x-forwarded-for'] !== undefined ||
    headers.forwarded !== undefined ||
    headers['x-forwarded-proto'] !== undefined
  );
}

function computeOrigin(request: IncomingMessage, { publicUrl, trustedProxies }: Place): ClientOrigin {
  const client = clientBehind(request, trustedProxies);
  if (client === undefined) {
    throw new Problem('invalid_request', {
      detail: 'Forwarded and X-Forwarded-For name different clients.',
      hint: 'Configure the proxy to set one of them and remove the other.',
    });
  }
  const { socket, headers } = request;
  const isEncrypted = 'encrypted' in socket && socket.encrypted === true;
  const scheme = client.scheme ?? (isEncrypted ? 'https' : 'http');
  const url = publicUrl ?? originOf(scheme, headers.host);
  return { ip: client.ip, baseUrl: url, certainUrl: publicUrl ?? (scheme === 'https' ? url : undefined) };
}

/**
 * The address of the client for logs; if that is uncertain, the peer address. Never throws: the log line of a request
 * whose address failed to be computed is written too.
 */
export function addressOf(request: IncomingMessage, place: Place): string | undefined {
  try {
    return (clientBehind(request, place.trustedProxies) ?? clientBehind(request, []))?.ip;
  } catch {
    // Where the address matters, clientOriginOf has thrown the same, and that was logged.
    return request.socket.remoteAddress;
  }
}

function clientBehind({ socket, headers }: IncomingMessage, trusted: readonly IpNetwork[]) {
  const arrival = {
    peer: socket.remoteAddress,
    // Node joins repeated lines of these headers.
    forwardedFor: headers['x-forwarded-for'] as string | undefined,
    forwarded: headers.forwarded,
    forwardedProto: headers['x-forwarded-proto'] as string | undefined,
  };
  return clientOf(arrival, trusted);
}

/** The base URL that the client used; empty if the header is missing or invalid. */
function originOf(scheme: Scheme, host: string | undefined): string {
  return host !== undefined && /^[A-Za-z0-9._-]+(:\d+)?$|^\[[0-9A-Fa-f:.]+\](:\d+)?$/.test(host)
    ? `${scheme}://${host}`
    : '';
}
