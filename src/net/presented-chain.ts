/**
 * The certificates that a TLS server presents. Nothing is sent to the server but the handshake, and nothing is trusted.
 */
import { isIP } from 'node:net';
import { connect, type DetailedPeerCertificate, type TLSSocket } from 'node:tls';
import { withDeadline } from '../base/deadline.ts';
import { second } from '../base/duration.ts';
import { OperatorError } from '../base/operator-error.ts';
import { describeSystemError } from '../base/system-error.ts';
import type { World } from '../base/world.ts';

export type TlsAddress = { readonly host: string; readonly port: number };

export type PresentedChain = {
  /** DER, from the leaf upwards; certificates that are not part of its chain are left out. */
  readonly certificates: readonly Buffer[];
  /** Such as TLSv1.3. */
  readonly protocol: string | null;
  readonly cipher: string;
};

/** For the name lookup, the connection and the handshake together. */
const patience = 10 * second;

/** Connects and shakes hands. Throws OperatorError if that fails or takes more than ten seconds. */
export async function presentedChain(
  world: Pick<World, 'sleep'>,
  { host, port }: TlsAddress,
): Promise<PresentedChain> {
  const address = isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
  return withDeadline(world, patience, new AbortController().signal, async ({ signal, ended }) => {
    const socket = connect({
      host,
      port,
      ...(isIP(host) === 0 && { servername: host }),
      rejectUnauthorized: false,
      // Without roots, the chain has nothing but what the server sends.
      ca: [],
      minVersion: 'TLSv1',
    });
    const stop = () => socket.destroy(new Error('timed out'));
    signal.addEventListener('abort', stop, { once: true });
    try {
      await handshake(socket);
      return chainOf(socket);
    } catch (error) {
      const reason =
        ended() === 'timeout'
          ? `no TLS handshake within ${patience / second} seconds`
          : describeSystemError(error);
      throw new OperatorError(`cannot inspect ${address}: ${reason}`, {
        hint: 'Check the address, and that the server speaks TLS on this port from the first byte.',
        cause: error,
      });
    } finally {
      signal.removeEventListener('abort', stop);
      socket.destroy();
    }
  });
}

function handshake(socket: TLSSocket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('secureConnect', resolve);
  socket.on('error', reject);
  socket.once('close', () => reject(new Error('the server closed the connection')));
  return promise;
}

function chainOf(socket: TLSSocket): PresentedChain {
  const certificates: Buffer[] = [];
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (next?.raw !== undefined && !certificates.some((der) => der.equals(next?.raw ?? der))) {
    certificates.push(next.raw);
    next = next.issuerCertificate;
  }
  return { certificates, protocol: socket.getProtocol(), cipher: socket.getCipher().standardName };
}
