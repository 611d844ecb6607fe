/**
 * Where a request came from and to: its client's address, and the URL by which that client found the vault. Everything
 * that depends on either (audit log, cookies, links, the look at where changes come from) asks here.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Problem } from '../../base/problem.ts';
import type { IpNetwork } from '../../net/ip-network.ts';
import { clientOf, type Scheme } from './client-address.ts';

/** What of the server's context matters here. */
export type Place = {
  /** Where clients find the vault, without a slash at the end; from the request where undefined. */
  readonly publicUrl: string | undefined;
  readonly trustedProxies: readonly IpNetwork[];
};

export type ClientOrigin = {
  readonly ip: string | undefined;
  /** What comes before the path in URLs for this client, without a slash at the end; empty where its Host is odd. */
  readonly baseUrl: string;
  /** The same where it is certain with its scheme, and otherwise undefined: an unknown proxy may speak HTTPS. */
  readonly certainUrl: string | undefined;
};

/** Of the last request of a connection on which no proxy said for whom it asks: the next one mostly has the same. */
const remembered = new WeakMap<Socket, { readonly host: string | undefined; readonly at: ClientOrigin }>();

/** Throws `invalid_request` where the headers of trusted proxies contradict each other about who the client is. */
export function clientOriginOf(request: IncomingMessage, place: Place): ClientOrigin {
  const { socket, headers } = request;
  if (isForwarded(headers)) return whereaboutsNow(request, place);
  const last = remembered.get(socket);
  if (last !== undefined && last.host === headers.host) return last.at;
  const at = whereaboutsNow(request, place);
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

function whereaboutsNow(request: IncomingMessage, { publicUrl, trustedProxies }: Place): ClientOrigin {
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

/** The address of the client for logs or, where it is not certain, the connection's other end. */
export function addressOf(request: IncomingMessage, { trustedProxies }: Place): string | undefined {
  return (clientBehind(request, trustedProxies) ?? clientBehind(request, []))?.ip;
}

function clientBehind({ socket, headers }: IncomingMessage, trusted: readonly IpNetwork[]) {
  const arrival = {
    peer: socket.remoteAddress,
    // Node joins the lines of these headers.
    forwardedFor: headers['x-forwarded-for'] as string | undefined,
    forwarded: headers.forwarded,
    forwardedProto: headers['x-forwarded-proto'] as string | undefined,
  };
  return clientOf(arrival, trusted);
}

/** Where the client found the vault, by its own account; nothing where the header is missing or odd. */
function originOf(scheme: Scheme, host: string | undefined): string {
  return host !== undefined && /^[A-Za-z0-9._-]+(:\d+)?$|^\[[0-9A-Fa-f:.]+\](:\d+)?$/.test(host)
    ? `${scheme}://${host}`
    : '';
}
