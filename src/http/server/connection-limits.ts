/**
 * What one connection may cost: the size and time of a request, the time in which an answer has to be taken, and how
 * many connections there are. When there are too many, one that waits for its client makes room for a new one.
 */
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { minute, second } from '../../base/duration.ts';
import { afterAnswer } from './pipelining.ts';

/** Times in milliseconds. */
export type ConnectionLimits = {
  /** Of all connections together. */
  readonly most: number;
  /** From the first byte, or from the beginning of a connection, to the end of the headers. */
  readonly headersMs: number;
  /** From there to the end of the body. */
  readonly requestMs: number;
  /** Between two requests of a connection. */
  readonly idleMs: number;
  /** In which something of an answer has to be taken. */
  readonly stalledMs: number;
  /** Bytes in a second that the slowest client takes on average; kernels take them in bursts. */
  readonly slowest: number;
};

export const usualConnectionLimits: ConnectionLimits = {
  most: 2000,
  headersMs: 20 * second,
  requestMs: 120 * second,
  // Longer than proxies keep their connections, so that none is closed under a request that is on its way.
  idleMs: 75 * second,
  stalledMs: 20 * second,
  slowest: 1024,
};

/** Of the request line and the headers together, in bytes. */
export const headerSize = 16_384;

/** Node would leave those that are too many out without a word, also what a proxy has added at the end. */
export const mostHeaders = 200;

/** How often is looked. */
const lookEvery = 250;

/** Refused connections whose answer may still be on its way; others are cut without one. */
const mostRefused = 100;

/** Bytes of requests sent ahead and of answers not taken, of all connections together. */
const mostKept = 24 * 1_048_576;

/** How long a refused connection may take to read why. */
const refusalMs = second;

/** For `createServer` of node:http and node:https. */
export function limitedOptions({ headersMs, requestMs, idleMs }: ConnectionLimits): ServerOptions {
  return {
    maxHeaderSize: headerSize,
    headersTimeout: Math.min(headersMs, requestMs),
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: lookEvery,
    // What waits in a socket for its turn, beyond what is read at once.
    highWaterMark: 16_384,
  };
}

type Connection = {
  readonly key: string;
  /** As it was accepted, and as it is read and written: not the same where there is TLS in between. */
  readonly accepted: Socket;
  channel: Socket;
  /** The last one, whose body may still arrive when it has been answered. */
  request: IncomingMessage | undefined;
  /** As long as it is not over. */
  response: ServerResponse | undefined;
  /** How much the client had taken at the last look, and how many milliseconds it is behind the slowest pace. */
  taken: number;
  behind: number;
};

/** What is told to whom when a limit is met. */
export type Refusals = {
  /** What came is no request, or not in time. */
  readonly unreadable: (error: NodeJS.ErrnoException, socket: Duplex) => void;
  /** The text that a new connection gets before it is closed, because there are too many. */
  readonly tooMany: (socket: Socket) => string;
  /** An answer was not taken, and its connection is cut. */
  readonly stalled: (channel: Socket) => void;
  /** There are as many connections as may be; told once a minute. */
  readonly full: () => void;
};

/** Holds the server to its limits, and answers what Node refuses. To be called when its other listeners are in place. */
export function limitConnections(server: Server, limits: ConnectionLimits, refusals: Refusals): void {
  // Those that have waited for longest stand first.
  const connections = new Map<string, Connection>();
  const byChannel = new WeakMap<Duplex, Connection>();
  const refused = new Set<Socket>();
  let sinceFull: number | undefined;
  server.maxHeadersCount = 0;

  const begin = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    if (connections.size >= limits.most) {
      if (sinceFull === undefined) refusals.full();
      sinceFull ??= 0;
      if (!makeRoom(connections)) {
        refuse(socket);
        return;
      }
    }
    const key = ends(socket);
    const connection: Connection = {
      ...{ key, accepted: socket, channel: socket },
      ...{ ...idle, taken: 0, behind: 0 },
    };
    connections.set(key, connection);
    byChannel.set(socket, connection);
    socket.once('close', () => {
      if (connections.get(key) === connection) connections.delete(key);
    });
    for (const listener of begin) listener.call(server, socket);
  });

  server.on('secureConnection', (channel: TLSSocket) => {
    const connection = connections.get(ends(channel));
    if (connection === undefined) return;
    connection.channel = channel;
    byChannel.set(channel, connection);
  });

  server.prependListener('request', (request, response) => {
    const connection = byChannel.get(request.socket);
    if (connection === undefined) return;
    connection.request = request;
    connection.response = response;
    response.on('close', answered);
  });

  function answered(this: ServerResponse): void {
    afterAnswer(this.req.socket);
    const connection = byChannel.get(this.req.socket);
    if (connection?.response !== this) return;
    connection.response = undefined;
    // It begins to wait now.
    if (connections.delete(connection.key)) connections.set(connection.key, connection);
  }

  server.on('clientError', refusals.unreadable);

  function refuse(socket: Socket): void {
    if ('setSecureContext' in server || refused.size >= mostRefused) {
      socket.destroy();
      return;
    }
    refused.add(socket);
    // What it sends is taken, because closing over it would take the answer back.
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
    for (const connection of connections.values()) {
      const { readableLength, writableLength } = connection.channel;
      kept += readableLength + writableLength;
      // Those that wait for longest stand first and stay; with TLS each byte is kept twice or three times.
      if (kept > mostKept && readableLength > headerSize) {
        kept -= readableLength + writableLength;
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

const idle = { request: undefined, response: undefined };

/**
 * Cuts the connection that has waited for its client for longest, or else one whose client has stopped taking its answer;
 * false where all wait for the vault.
 */
function makeRoom(connections: Map<string, Connection>): boolean {
  let stopped: Connection | undefined;
  for (const connection of connections.values()) {
    const { request, response, behind } = connection;
    if (response === undefined || request?.complete !== true) {
      cut(connections, connection);
      return true;
    }
    if (behind > (stopped?.behind ?? 0)) stopped = connection;
  }
  if (stopped !== undefined) cut(connections, stopped);
  return stopped !== undefined;
}

function cut(connections: Map<string, Connection>, { key, accepted }: Connection): void {
  connections.delete(key);
  accepted.destroy();
}

/** Whether a client takes what waits for it too slowly: each byte that it takes makes up for the time of one. */
function isStalled(connection: Connection, { stalledMs, slowest }: ConnectionLimits): boolean {
  const { writableLength: waiting, bytesWritten } = connection.channel;
  const taken = bytesWritten - waiting;
  const earned = ((taken - connection.taken) / slowest) * second;
  connection.taken = taken;
  connection.behind = waiting === 0 ? 0 : Math.max(0, connection.behind + lookEvery - earned);
  return connection.behind > stalledMs;
}

/** Both ends of a connection, the same with TLS and without. */
function ends({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
