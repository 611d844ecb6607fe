/**
 * Connections that validate ACME challenges: one HTTP request or one TLS handshake with an address that is known
 * already. Nothing the server sends is trusted, and no more of it is read than an answer needs.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { withDeadline } from '../base/deadline.ts';
import { second } from '../base/duration.ts';
import { shortened } from '../base/printable-text.ts';
import { describeSystemError } from '../base/system-error.ts';
import type { World } from '../base/world.ts';
import type { OutboundGuard } from './outbound-guard.ts';
import { outboundSocket } from './outbound-socket.ts';

export type ValidationContext = { readonly world: Pick<World, 'sleep'>; readonly guard: OutboundGuard };

export type ValidationAddress = { readonly address: string; readonly port: number };

/** How far the connection came: nothing accepted it, TLS failed on it, or what came then was no answer. */
export type ValidationStage = 'connect' | 'tls' | 'answer';

/** The message is a clause for people, such as `connection refused`. */
export class ValidationFailure extends Error {
  readonly stage: ValidationStage;

  constructor(stage: ValidationStage, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ValidationFailure';
    this.stage = stage;
  }
}

export type ValidationRequest = {
  /** The name in the Host header and, with TLS, in the handshake. */
  readonly host: string;
  readonly isSecure: boolean;
  /** With the query. */
  readonly path: string;
  readonly userAgent: string;
  /** More of the body is not read. */
  readonly maxBytes: number;
};

export type ValidationResponse = {
  readonly status: number;
  readonly location: string | undefined;
  /** Empty for a redirect. */
  readonly body: Buffer;
  /** Whether there was more than `maxBytes`. */
  readonly isCut: boolean;
};

/** For the TCP connection alone, so that there is time for another address. */
const connectLimit = 4 * second;

/** Sends one GET request and closes the connection. Throws ValidationFailure, and ValidationRefusal of the guard. */
export async function validationGet(
  context: ValidationContext,
  at: ValidationAddress,
  request: ValidationRequest,
  signal: AbortSignal,
): Promise<ValidationResponse> {
  const tcp = await connectedTo(context, at, signal);
  try {
    const socket = request.isSecure ? await secured(tcp, request.host, [], signal) : tcp;
    return await ask(socket, request, signal);
  } finally {
    tcp.destroy();
  }
}

export type ValidationHandshake = {
  /** What was agreed on by ALPN. */
  readonly protocol: string | undefined;
  /** DER of the certificate that the server presented. */
  readonly certificate: Buffer | undefined;
};

/** Shakes hands with this server name and this protocol, and closes the connection. Throws like `validationGet`. */
export async function validationHandshake(
  context: ValidationContext,
  at: ValidationAddress,
  { serverName, protocol }: { readonly serverName: string; readonly protocol: string },
  signal: AbortSignal,
): Promise<ValidationHandshake> {
  const tcp = await connectedTo(context, at, signal);
  try {
    const socket = await secured(tcp, serverName, [protocol], signal);
    return {
      protocol: socket.alpnProtocol || undefined,
      certificate: socket.getPeerX509Certificate()?.raw,
    };
  } finally {
    tcp.destroy();
  }
}

function connectedTo(
  { world, guard }: ValidationContext,
  { address, port }: ValidationAddress,
  signal: AbortSignal,
): Promise<Socket> {
  return withDeadline(world, connectLimit, signal, async (deadline) => {
    // Throws for a refused address; outboundSocket asks the guard again.
    guard.target(address, port);
    try {
      return await outboundSocket(guard, { host: address, port }, deadline.signal);
    } catch (error) {
      const isLate = deadline.ended() === 'timeout';
      const message = isLate ? `no connection within ${connectLimit / second} s` : describeSystemError(error);
      throw new ValidationFailure('connect', message, error);
    }
  });
}

/** TLS on the socket. No certificate is verified: the content of the answer is the proof. */
async function secured(
  tcp: Socket,
  serverName: string,
  protocols: readonly string[],
  signal: AbortSignal,
): Promise<TLSSocket> {
  const socket = connectTls({
    socket: tcp,
    // RFC 6066 §3 allows no addresses.
    ...(isIP(serverName) === 0 && { servername: serverName }),
    ...(protocols.length > 0 && { ALPNProtocols: [...protocols] }),
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const giveUp = () => reject(new Error('the validation was canceled'));
  socket.once('secureConnect', resolve);
  socket.on('error', reject);
  socket.once('close', () => reject(new Error('the server closed the connection')));
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  try {
    await promise;
    return socket;
  } catch (error) {
    throw new ValidationFailure('tls', shortened(describeSystemError(error), 200), error);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

async function ask(
  socket: Socket,
  { host, path, userAgent, maxBytes }: ValidationRequest,
  signal: AbortSignal,
): Promise<ValidationResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<ValidationResponse>();
  const request = httpRequest({
    createConnection: () => socket,
    method: 'GET',
    path,
    setHost: false,
    headers: {
      Host: isIP(host) === 6 ? `[${host}]` : host,
      'User-Agent': userAgent,
      Accept: '*/*',
      'Accept-Encoding': 'identity',
      Connection: 'close',
    },
  });
  const giveUp = () => reject(new Error('the validation was canceled'));
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  request.on('error', reject);
  let hasAnswer = false;
  request.once('response', (response) => {
    hasAnswer = true;
    read(response, maxBytes).then(resolve, reject);
  });
  // After a response that asks for another protocol, Node closes the connection silently.
  request.once(
    'close',
    () => hasAnswer || reject(new Error('the server closed the connection before it answered')),
  );
  request.end();
  try {
    return await promise;
  } catch (error) {
    throw new ValidationFailure('answer', reasonOf(error), error);
  } finally {
    signal.removeEventListener('abort', giveUp);
    request.destroy();
  }
}

async function read(response: IncomingMessage, maxBytes: number): Promise<ValidationResponse> {
  const status = response.statusCode ?? 0;
  const { location } = response.headers;
  const head = { status, location };
  if (status >= 300 && status < 400) return { ...head, body: Buffer.alloc(0), isCut: false };
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    chunks.push(chunk);
    if (size > maxBytes) break;
  }
  return { ...head, body: Buffer.concat(chunks).subarray(0, maxBytes), isCut: size > maxBytes };
}

function reasonOf(error: unknown): string {
  const { code = '' } = error as NodeJS.ErrnoException;
  const reason = shortened(describeSystemError(error), 200);
  if (code.startsWith('HPE_')) return `the response is not HTTP: ${reason}`;
  if (code === 'ECONNRESET') return 'the server closed the connection before the response was complete';
  return reason;
}
