/**
 * The certificate that a client presented on the TLS connection of a request. It comes from the connection and from
 * nowhere else: a header that a proxy or a client adds proves nothing.
 */
import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';

/**
 * The leaf that the client presented, whose private key it has proven to hold; nothing else about it is verified.
 * `no TLS` over plain HTTP, and `none` if the client presented none.
 */
export function presentedCertificate({
  socket,
}: Pick<IncomingMessage, 'socket'>): X509Certificate | 'no TLS' | 'none' {
  if (!(socket instanceof TLSSocket)) return 'no TLS';
  return socket.getPeerX509Certificate() ?? 'none';
}
