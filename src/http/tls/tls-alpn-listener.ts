/**
 * The listener for tls-alpn-01 challenges (RFC 8737 §4): it supports only acme-tls/1, shows the certificate of the
 * challenge, and closes the connection. Everything else is rejected before a certificate is chosen.
 */
import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { second } from '../../base/duration.ts';
import type { LogContext, LoggedContext } from '../../domain/contexts.ts';
import { type ListenAddress, type ListenOption, listen } from '../../net/listening.ts';
import { readOpening } from './client-hello.ts';
import { challengeContexts, type FindChallengeContext } from './tls-alpn-certificate.ts';

export const acmeTls = 'acme-tls/1';

export const acmeTlsOption: ListenOption = { option: '--acme-tls-listen', example: '0.0.0.0:443' };

export type TlsAlpnListener = {
  /** `host:port`, with the actual port. */
  readonly address: string;
  /** Closes immediately; a CA whose validation is interrupted retries it. */
  readonly stop: () => Promise<void>;
};

export type TlsAlpnLimits = {
  /** For the first message, and again for the rest of the handshake. */
  readonly handshakeMs: number;
  readonly connections: number;
};

const usual: TlsAlpnLimits = { handshakeMs: 10 * second, connections: 200 };

/** Fatal, no_application_protocol (RFC 7301 §3.2), as a record of TLS 1.2. */
const noApplicationProtocol = Buffer.from([21, 3, 3, 0, 2, 2, 120]);

/** Starts answering challenges. Throws OperatorError if the address is unavailable. */
export async function startTlsAlpnListener(
  vault: LoggedContext,
  address: ListenAddress,
  limits: TlsAlpnLimits = usual,
): Promise<TlsAlpnListener> {
  const validation = validationServer(vault, challengeContexts(vault), limits.handshakeMs);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket
      .once('close', () => sockets.delete(socket))
      .on('error', () => {
        // A client that disconnects is not an error; `close` follows.
      });
    void receive(validation, socket, limits.handshakeMs);
  });
  server.maxConnections = limits.connections;
  const place = await listen(server, address, acmeTlsOption);
  server.on('error', (error) => vault.log.error({ err: error }, 'tls-alpn-01 listener error'));
  return {
    address: place,
    stop: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/**
 * Accepts connections through its event `connection`, handles acme-tls/1 on them, and closes them. It receives only
 * those that request this protocol.
 */
export function validationServer(
  vault: LogContext,
  find: FindChallengeContext,
  handshakeMs: number,
): TlsServer {
  return createTlsServer({
    ALPNProtocols: [acmeTls],
    handshakeTimeout: handshakeMs,
    // Without a context there is no certificate, and the handshake fails with an alert.
    SNICallback: (serverName, done) => {
      find(serverName).then(
        (context) => {
          vault.log.debug(
            { server_name: serverName, known: context !== undefined },
            'tls-alpn-01 challenge requested',
          );
          done(null, context);
        },
        (error: unknown) => {
          vault.log.error({ err: error }, 'failed to answer a tls-alpn-01 challenge');
          done(null);
        },
      );
    },
  })
    .on('secureConnection', (socket: TLSSocket) => {
      socket.on('error', () => {
        // The connection is closed anyway.
      });
      socket.destroySoon();
    })
    .on('tlsClientError', (error, socket) => {
      vault.log.debug({ err: error }, 'tls-alpn-01 handshake failed');
      socket.destroy();
    });
}

async function receive(validation: TlsServer, socket: Socket, handshakeMs: number): Promise<void> {
  socket.setTimeout(handshakeMs, () => socket.destroy());
  const opening = await readOpening(socket);
  if (socket.destroyed) return;
  if (opening.kind !== 'hello') {
    socket.destroy();
  } else if (opening.protocols.includes(acmeTls)) {
    socket.setTimeout(0);
    validation.emit('connection', socket);
  } else {
    socket.end(noApplicationProtocol, () => socket.destroy());
  }
}
