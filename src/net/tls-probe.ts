/**
 * One look at the certificate that a server presents, after STARTTLS if the protocol needs it. Nothing the server sends
 * is trusted, and it cannot make the probe last longer or grow.
 */
import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type TLSSocket } from 'node:tls';
import { withDeadline } from '../base/deadline.ts';
import { second } from '../base/duration.ts';
import { OperatorError } from '../base/operator-error.ts';
import { shortened } from '../base/printable-text.ts';
import { describeSystemError } from '../base/system-error.ts';
import type { World } from '../base/world.ts';
import { hasReadableTimes } from '../crypto/x509/certificate-facts.ts';
import type { OutboundGuard } from './outbound-guard.ts';
import { outboundSocket } from './outbound-socket.ts';
import { type StartTls, startTls } from './starttls.ts';
import { StartTlsFailure, Wire } from './starttls-wire.ts';

export type ProbeTarget = {
  readonly host: string;
  readonly port: number;
  /** For the handshake (SNI); empty for none. */
  readonly serverName: string;
  readonly starttls: StartTls | null;
  /** How long the probe may take, in milliseconds (default: `probeLimit`). */
  readonly limit?: number;
};

export type Probe = {
  /** The leaf, then the others in the order of the server, which is not always that of the chain. */
  readonly certificates: readonly [X509Certificate, ...X509Certificate[]];
  /** Such as TLSv1.3. */
  readonly tlsVersion: string | null;
  /** Whether the server sent an OCSP response with its certificate. */
  readonly isStapled: boolean;
};

/** There is no certificate to look at. The message is a clause for people, such as `connection refused`. */
export class ProbeFailure extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ProbeFailure';
  }
}

/** For the name lookup, the connection, STARTTLS and the handshake together. */
export const probeLimit = 10 * second;

/** More are of no use to clients. */
const maxCertificates = 10;

/** Without roots, the chain has nothing but what the server sends. */
const context = createSecureContext({ ca: [], minVersion: 'TLSv1.2' });

/** Connects, shakes hands and closes the connection. Throws ProbeFailure. */
export async function probeTls(
  { world, guard }: { readonly world: Pick<World, 'sleep'>; readonly guard: OutboundGuard },
  target: ProbeTarget,
  signal: AbortSignal,
): Promise<Probe> {
  const { limit = probeLimit } = target;
  return withDeadline(world, limit, signal, async (deadline) => {
    let socket: Socket | undefined;
    const stop = () => socket?.destroy(new Error('stopped'));
    deadline.signal.addEventListener('abort', stop, { once: true });
    try {
      socket = await outboundSocket(guard, target, deadline.signal);
      // Errors are reported by what waits for the socket; there may be one in between.
      socket.on('error', () => undefined);
      if (target.starttls !== null) {
        const wire = new Wire(socket);
        await startTls(target.starttls, wire, target.serverName || target.host);
        wire.release();
      }
      const probe = await handshake(socket, target.serverName);
      if (hasReadableTimes(probe.certificates[0])) return probe;
      throw new ProbeFailure('the validity period of the certificate is unreadable');
    } catch (error) {
      if (error instanceof ProbeFailure) throw error;
      throw new ProbeFailure(reasonOf(error, deadline.ended(), limit, socket !== undefined), error);
    } finally {
      deadline.signal.removeEventListener('abort', stop);
      socket?.destroy();
    }
  });
}

async function handshake(tcp: Socket, serverName: string): Promise<Probe> {
  const socket = connectTls({
    socket: tcp,
    ...(serverName !== '' && { servername: serverName }),
    rejectUnauthorized: false,
    requestOCSP: true,
    secureContext: context,
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let presented: Probe | undefined;
  let isStapled = false;
  socket.once('OCSPResponse', (response: Buffer | null) => {
    isStapled = response !== null && response.length > 0;
    // A server that demands a client certificate ends TLS 1.2 after this, but its own is known.
    presented = seen(socket, isStapled);
  });
  socket.once('secureConnect', resolve);
  socket.on('error', reject);
  socket.once('close', () => reject(new Error('the server closed the connection')));
  try {
    await promise;
    const probe = seen(socket, isStapled);
    if (probe === undefined) throw new ProbeFailure('the server presented no certificate');
    return probe;
  } catch (error) {
    if (presented !== undefined) return presented;
    throw error;
  } finally {
    socket.destroy();
  }
}

function seen(socket: TLSSocket, isStapled: boolean): Probe | undefined {
  const leaf = socket.getPeerX509Certificate();
  if (leaf === undefined) return undefined;
  const certificates: [X509Certificate, ...X509Certificate[]] = [leaf];
  let next = leaf.issuerCertificate;
  for (let read = 1; next !== undefined && read < maxCertificates; read += 1) {
    const one = next;
    // Servers that are set up by hand also send one twice.
    const isNew = !certificates.some(({ raw }) => raw.equals(one.raw));
    if (isNew && hasReadableTimes(one)) certificates.push(one);
    next = one.issuerCertificate;
  }
  return { certificates, tlsVersion: socket.getProtocol(), isStapled };
}

function reasonOf(
  error: unknown,
  ended: 'timeout' | 'aborted' | undefined,
  limit: number,
  isConnected: boolean,
): string {
  if (ended === 'aborted') return 'the check was canceled';
  if (ended === 'timeout') {
    return isConnected
      ? `no TLS handshake within ${limit / second} s`
      : `no connection within ${limit / second} s`;
  }
  if (error instanceof StartTlsFailure || error instanceof OperatorError) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  const own = code === undefined ? undefined : reasons[code];
  return own ?? shortened(describeSystemError(error), 200);
}

const reasons: Readonly<Record<string, string>> = {
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not speak TLS on this port from the first byte',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the server does not speak TLS on this port from the first byte',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'the server offers only TLS 1.1 or older',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'the server offers only TLS 1.1 or older',
  'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE': 'the server rejected the TLS handshake',
  ERR_SSL_TLSV1_UNRECOGNIZED_NAME: 'the server rejected the server name',
  ERR_SSL_EXCESSIVE_MESSAGE_SIZE: 'the certificate chain is too large',
};
