/** An HTTPS client for tests: one request per connection, with the facts of its TLS session. */
import { hash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';

export type Visit = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Of the server's certificate. */
  readonly leaf: X509Certificate;
  readonly pin: string;
};

export type VisitOptions = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The trusted root; by default any certificate is accepted. */
  readonly ca?: string;
  /** The name that the certificate must have, if `ca` is given. */
  readonly servername?: string;
  /** The client's certificate and private key, as PEM. */
  readonly cert?: string;
  readonly key?: string;
};

/** Requests a URL over a new connection. */
export async function visit(url: string | URL, options: VisitOptions = {}): Promise<Visit> {
  const { body = '', ca, servername, ...rest } = options;
  const trust = ca === undefined ? { rejectUnauthorized: false } : { ca, ...(servername && { servername }) };
  const asked = request(url, { agent: false, ...rest, ...trust });
  asked.end(body);
  const [response] = await once(asked, 'response');
  const { leaf, pin } = shownBy(response.socket as TLSSocket);
  return { status: response.statusCode, headers: response.headers, body: await text(response), leaf, pin };
}

/** The server's certificate and the pin of its key. */
export function shownBy(socket: TLSSocket): { readonly leaf: X509Certificate; readonly pin: string } {
  const leaf = new X509Certificate(socket.getPeerCertificate(true).raw);
  return { leaf, pin: pinOf(leaf) };
}

/** The pin, as computed by `openssl dgst`. */
export function pinOf({ publicKey }: X509Certificate): string {
  return `sha256//${hash('sha256', publicKey.export({ type: 'spki', format: 'der' }), 'base64')}`;
}

/** A TLS connection, or the error of the handshake. */
export async function handshake(url: string, options: ConnectionOptions = {}): Promise<TLSSocket | Error> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false, ...options });
  try {
    await once(socket, 'secureConnect');
    return socket;
  } catch (error) {
    return error as Error;
  }
}
