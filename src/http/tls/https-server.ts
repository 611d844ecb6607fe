/**
 * The HTTPS server. It reads the first message of each connection before TLS does: it answers tls-alpn-01 challenges on
 * the same port, and responds with an error to plain HTTP.
 */
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { second } from '../../base/duration.ts';
import { doInFairTurn } from '../../base/fair-turns.ts';
import type { LoggedContext } from '../../domain/contexts.ts';
import { readOpening } from './client-hello.ts';
import { challengeContexts } from './tls-alpn-certificate.ts';
import { acmeTls, validationServer } from './tls-alpn-listener.ts';
import type { TlsEndpoint } from './tls-endpoint.ts';

/** For the first message, and again for the rest of the handshake. */
const defaultHandshakeTimeout = 10 * second;

export type HttpsServer = {
  readonly server: Server;
  /** Closes the connections without a completed handshake. */
  readonly closeGreetings: () => void;
};

export type HttpsOptions = {
  readonly endpoint: TlsEndpoint;
  readonly handshakeMs?: number;
};

/** A server that is not listening yet. `onPlain` responds to data that is not TLS, and closes the connection. */
export function createHttpsServer(
  vault: LoggedContext,
  {
    endpoint,
    handshakeMs = defaultHandshakeTimeout,
    options,
  }: HttpsOptions & { readonly options: ServerOptions },
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
  onPlain: (socket: Socket, bytes: Buffer) => void,
): HttpsServer {
  const server = createServer(
    { ...options, ...endpoint.options(), handshakeTimeout: handshakeMs },
    onRequest,
  );
  const validation = validationServer(vault, challengeContexts(vault), handshakeMs);
  const greetings = new Map<string, Socket>();
  // Node's own listener starts TLS immediately; here it starts after the client's protocols are known.
  const beginTls = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    const peer = peerOf(socket);
    greetings.set(peer, socket);
    socket
      .once('close', () => forget(peer, socket))
      .on('error', () => {
        // A client that disconnects is not an error; `close` follows.
      });
    void greet(socket);
  });
  server.on('secureConnection', (socket: TLSSocket) => greetings.delete(peerOf(socket)));
  // Node's own listener would treat these as unreadable requests.
  server.removeAllListeners('tlsClientError').on('tlsClientError', (error, socket) => {
    vault.log.debug({ err: error }, 'TLS handshake failed');
    socket.destroy();
  });

  async function greet(socket: Socket): Promise<void> {
    const tooSlow = () => socket.destroy();
    socket.setTimeout(handshakeMs, tooSlow);
    const opening = await readOpening(socket);
    if (socket.destroyed) return;
    if (opening.kind === 'ended') {
      socket.destroy();
      return;
    }
    if (opening.kind === 'other') {
      onPlain(socket, opening.bytes);
      return;
    }
    socket.setTimeout(0).off('timeout', tooSlow);
    doInFairTurn(() => {
      if (socket.destroyed) return;
      if (opening.protocols.includes(acmeTls)) validation.emit('connection', socket);
      else for (const begin of beginTls) begin.call(server, socket);
    });
  }

  function forget(peer: string, socket: Socket): void {
    if (greetings.get(peer) === socket) greetings.delete(peer);
  }

  return {
    server,
    closeGreetings: () => {
      for (const socket of greetings.values()) socket.destroy();
    },
  };
}

/** The same for a connection and its TLS socket. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
