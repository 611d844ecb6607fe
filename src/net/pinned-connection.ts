/**
 * TLS connections to a server that is known by its public key; the CA of its certificate does not matter. Nothing is
 * sent before the key has been compared.
 */
import { connect, type TLSSocket } from 'node:tls';
import { publicKeyPin } from '../crypto/public-key-pin.ts';
import type { OutboundGuard } from './outbound-guard.ts';

/** The server has another key than its pin says. */
export class PinMismatch extends Error {
  constructor(host: string, found: string) {
    super(`${host} has another public key: ${found}`);
    this.name = 'PinMismatch';
  }
}

/**
 * A connection to the server of a request, whose handshake is done; undefined if CAs decide. Throws PinMismatch, what
 * the guard refuses, or the error of the connection; `signal` ends the attempt.
 */
export async function pinnedConnection(
  { url, pin }: { readonly url: string; readonly pin?: string | undefined },
  guard: OutboundGuard,
  signal: AbortSignal,
): Promise<TLSSocket | undefined> {
  if (pin === undefined || !url.startsWith('https:')) return undefined;
  const { hostname, port } = new URL(url);
  const to = guard.target(hostname.replace(/^\[|\]$/g, ''), Number(port) || 443);
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const name = /[a-z]/i.test(to.host) && !to.host.includes(':') ? { servername: to.host } : {};
  // The public key decides; a CA has no say.
  const socket = connect({ ...to, ...name, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
  const giveUp = () => socket.destroy(new Error('ended'));
  if (signal.aborted) giveUp();
  signal.addEventListener('abort', giveUp, { once: true });
  socket.once('error', reject);
  socket.once('secureConnect', () => {
    signal.removeEventListener('abort', giveUp);
    const found = socket.getPeerX509Certificate();
    const its = found === undefined ? 'none' : publicKeyPin(found);
    if (its === pin) resolve(socket);
    else socket.destroy(new PinMismatch(to.host, its));
  });
  return promise;
}
