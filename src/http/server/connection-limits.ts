/**
 * Limits of a connection: size and duration of a request, the time to read a response, and the number of connections.
 * When there are too many, an idle one is closed for a new one.
 */
import type { Server, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { minute, second } from '../../base/duration.ts';
import { sizeOfArriving } from '../request/request-body.ts';
import {
  accept,
  awaitHandshake,
  type Connection,
  type Connections,
  connectionOf,
  everyOne,
  makeRoom,
  secured,
} from './open-connections.ts';
import { afterAnswer } from './pipelining.ts';

/** Times in milliseconds. */
export type ConnectionLimits = {
  /** All connections together. */
  readonly most: number;
  /** From the first byte, or from the start of a connection, to the end of the headers. */
  readonly headersMs: number;
  /** From there to the end of the body. */
  readonly requestMs: number;
  /** Between two requests on a connection. */
  readonly idleMs: number;
  /** Within this time the client must read part of a response. */
  readonly stalledMs: number;
  /** Bytes per second that the slowest client reads on average; kernels read in bursts. */
  readonly slowest: number;
  /** Bytes of pipelined requests, arriving bodies and unread responses; above it, the largest receivers are closed. */
  readonly retained: number;
};

export const defaultConnectionLimits: ConnectionLimits = {
  most: 2000,
  headersMs: 20 * second,
  requestMs: 120 * second,
  // Longer than proxies keep their connections, so that none is closed while a request arrives.
  idleMs: 75 * second,
  stalledMs: 20 * second,
  slowest: 1024,
  retained: 24 * 1_048_576,
};

/** Request line and headers together, in bytes. */
export const headerSize = 16_384;

/** In bytes: a client that waits for a new version has no reason to send its next request. */
export const heldSize = 1024;

/** Node silently drops excess headers, including those that a proxy appended. */
export const maxHeaders = 200;

/** How often connections are checked. */
const lookEvery = 250;

/** Refused connections whose response may still be on its way; others are closed without one. */
const maxRefused = 100;

/** How long a refused connection may take to read the reason. */
const refusalMs = second;

/** Options of `createServer` in node:http and node:https. */
export function limitedOptions({ headersMs, requestMs, idleMs }: ConnectionLimits): ServerOptions {
  return {
    maxHeaderSize: headerSize,
    headersTimeout: Math.min(headersMs, requestMs),
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: lookEvery,
    // Buffered in a socket, beyond what is read at once.
    highWaterMark: 16_384,
  };
}

/** Callbacks for exceeded limits. */
export type Refusals = {
  /** Received data is not a request, or arrived too late. */
  readonly unreadable: (error: NodeJS.ErrnoException, socket: Duplex) => void;
  /** The response to a new connection that is closed because there are too many. */
  readonly tooMany: (socket: Socket) => string;
  /** A response was not read in time, and its connection is closed. */
  readonly stalled: (channel: Socket) => void;
  /** The maximum number of connections is reached; reported once a minute. */
  readonly full: () => void;
};

/**
 * Enforces the limits of the server, and responds to what Node rejects. Call it after its other listeners are
 * registered.
 */
export function limitConnections(server: Server, limits: ConnectionLimits, refusals: Refusals): void {
  const all: Connections = { open: new Set(), held: new Set() };
  const refused = new Set<Socket>();
  let sinceFull: number | undefined;
  server.maxHeadersCount = 0;

  const begin = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    if (all.open.size >= limits.most) {
      if (sinceFull === undefined) refusals.full();
      sinceFull ??= 0;
      if (!makeRoom(all)) {
        refuse(socket);
        return;
      }
    }
    const connection = accept(all, socket);
    if ('setSecureContext' in server) awaitHandshake(connection);
    for (const listener of begin) listener.call(server, socket);
  });

  server.on('secureConnection', secured);

  server.prependListener('request', (request, response) => {
    const connection = connectionOf(request.socket);
    if (connection === undefined) return;
    connection.request = request;
    connection.response = response;
    response.on('close', answered);
  });

  function answered(this: ServerResponse): void {
    afterAnswer(this.req.socket);
    const connection = connectionOf(this.req.socket);
    if (connection?.response !== this) return;
    connection.response = undefined;
    // Its idle time starts now.
    if (all.open.delete(connection)) all.open.add(connection);
  }

  server.on('clientError', refusals.unreadable);

  function refuse(socket: Socket): void {
    if ('setSecureContext' in server || refused.size >= maxRefused) {
      socket.destroy();
      return;
    }
    refused.add(socket);
    // Its data is still read, because closing the connection with unread data would discard the response.
    socket
      .on('data', () => undefined)
      .on('error', () => socket.destroy())
      .once('end', () => socket.destroy())
      .once('close', () => refused.delete(socket))
      .setTimeout(refusalMs, () => socket.destroy())
      .end(refusals.tooMany(socket));
  }

  const looking = setInterval(() => {
    let kept = 0;
    for (const connection of everyOne(all)) {
      const { readableLength, writableLength } = connection.channel;
      const received = readableLength + sizeOfArriving(connection.request);
      kept += received + writableLength;
      // Held ones come last: no others are closed for them. With TLS each byte is buffered two or three times.
      const allowed = all.held.has(connection) ? heldSize : headerSize;
      if (kept > limits.retained && received > allowed) {
        kept -= received + writableLength;
        connection.accepted.destroy();
        continue;
      }
      if (!isStalled(connection, limits)) continue;
      refusals.stalled(connection.channel);
      connection.accepted.destroy();
    }
    if (sinceFull !== undefined) sinceFull += lookEvery;
    if (sinceFull !== undefined && sinceFull >= minute) sinceFull = undefined;
  }, lookEvery);
  looking.unref();
  server.once('close', () => clearInterval(looking));
}

/** Whether a client reads its responses too slowly: each byte it reads pays back the time of one byte. */
function isStalled(connection: Connection, { stalledMs, slowest }: ConnectionLimits): boolean {
  const { writableLength: waiting, bytesWritten } = connection.channel;
  const taken = bytesWritten - waiting;
  const earned = ((taken - connection.taken) / slowest) * second;
  connection.taken = taken;
  connection.behind = waiting === 0 ? 0 : Math.max(0, connection.behind + lookEvery - earned);
  return connection.behind > stalledMs;
}
