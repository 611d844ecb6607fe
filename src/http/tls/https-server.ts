/**
 * The server for HTTPS. It reads each connection's first message before TLS does: tls-alpn-01 challenges are answered on
 * the same port, and whoever speaks plain HTTP here is told so.
 */
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { second } from '../../base/duration.ts';
import type { LoggedContext } from '../../domain/contexts.ts';
import { doInFairTurn } from '../server/fair-turns.ts';
import { readOpening } from './client-hello.ts';
import { challengeContexts } from './tls-alpn-certificate.ts';
import { acmeTls, validationServer } from './tls-alpn-listener.ts';
import type { TlsEndpoint } from './tls-endpoint.ts';

/** For the first message, and again for the rest of the handshake. */
const usualHandshake = 10 * second;

export type HttpsServer = {
  readonly server: Server;
  /** Closes the connections on which no handshake has been finished. */
  readonly closeGreetings: () => void;
};

export type HttpsOptions = {
  readonly endpoint: TlsEndpoint;
  readonly handshakeMs?: number;
};

/** A server that does not listen yet. `onPlain` answers what is no TLS, and ends the connection. */
export function createHttpsServer(
  vault: LoggedContext,
  { endpoint, handshakeMs = usualHandshake, options }: HttpsOptions & { readonly options: ServerOptions },
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
  onPlain: (socket: Socket, bytes: Buffer) => void,
): HttpsServer {
  const server = createServer(
    { ...options, ...endpoint.options(), handshakeTimeout: handshakeMs },
    onRequest,
  );
  const validation = validationServer(vault, challengeContexts(vault), handshakeMs);
  const greetings = new Map<string, Socket>();
  // Node's own listener begins TLS at once; here it begins after a look at what the client wants.
  const beginTls = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    const peer = peerOf(socket);
    greetings.set(peer, socket);
    socket
      .once('close', () => forget(peer, socket))
      .on('error', () => {
        // Whoever breaks off is no concern of the vault; `close` follows.
      });
    void greet(socket);
  });
  server.on('secureConnection', (socket: TLSSocket) => greetings.delete(peerOf(socket)));
  // Node's own listener would take these for requests that cannot be read.
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

/** The same for a connection and for the TLS on it. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
