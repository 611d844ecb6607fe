/** The connections of a server: in the order of their use, and those whose request waits for a new version. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';

export type Connections = {
  /** Longest idle first. */
  readonly open: Set<Connection>;
  /** Requests that wait for a new version do not take the place of others. */
  readonly held: Set<Connection>;
};

export type Connection = {
  /** All of its server. */
  readonly all: Connections;
  /** The accepted socket, and the one that is read and written: they differ with TLS. */
  readonly accepted: Socket;
  channel: Socket;
  /** The last request, whose body may still arrive after its response. */
  request: IncomingMessage | undefined;
  /** Until it is finished. */
  response: ServerResponse | undefined;
  /**
   * How much the client had read at the last check, and how many milliseconds it lags behind the slowest allowed pace.
   */
  taken: number;
  behind: number;
};

/** By the socket that was accepted and, with TLS, also by the one that is read and written. */
const connections = new WeakMap<Duplex, Connection>();

/** Registers the new connection of a socket. */
export function accept(all: Connections, socket: Socket): Connection {
  const connection: Connection = {
    all,
    accepted: socket,
    channel: socket,
    request: undefined,
    response: undefined,
    taken: 0,
    behind: 0,
  };
  all.open.add(connection);
  connections.set(socket, connection);
  socket.on('close', closed);
  return connection;
}

/** The connection of a socket, if it was accepted. */
export function connectionOf(socket: Duplex): Connection | undefined {
  return connections.get(socket);
}

/** Whether the request on this connection waits for a new version; it then does not count as a connection. */
export function setHeld(socket: Duplex, isHeld: boolean): void {
  const connection = connections.get(socket);
  if (connection === undefined) return;
  const { open, held } = connection.all;
  const [from, to] = isHeld ? [open, held] : [held, open];
  if (from.delete(connection)) to.add(connection);
}

/** One listener of all connections: a closure would cost each. */
function closed(this: Socket): void {
  const connection = connections.get(this);
  connection?.all.open.delete(connection);
  connection?.all.held.delete(connection);
}

/** Those that wait for a new version come last. */
export function* everyOne({ open, held }: Connections): Generator<Connection> {
  yield* open;
  yield* held;
}

/** Connections whose TLS handshake is in progress, by their addresses. */
const greeting = new Map<string, Connection>();

/** Expects the event `secureConnection` of this connection. */
export function awaitHandshake(connection: Connection): void {
  const { accepted } = connection;
  const key = ends(accepted);
  greeting.set(key, connection);
  accepted.once('close', () => {
    if (greeting.get(key) === connection) greeting.delete(key);
  });
}

/** For the event `secureConnection`: the connection is read and written through this socket. */
export function secured(channel: TLSSocket): void {
  const key = ends(channel);
  const connection = greeting.get(key);
  if (connection === undefined) return;
  greeting.delete(key);
  connection.channel = channel;
  connections.set(channel, connection);
}

/** Both addresses of a connection, the same with and without TLS. */
function ends({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

/**
 * Closes the connection that has been idle for longest, or else one whose client has stopped reading its response;
 * false if all wait for the vault.
 */
export function makeRoom({ open }: Connections): boolean {
  let stopped: Connection | undefined;
  for (const connection of open) {
    const { request, response, behind } = connection;
    if (response === undefined || request?.complete !== true) {
      cut(connection);
      return true;
    }
    if (behind > (stopped?.behind ?? 0)) stopped = connection;
  }
  if (stopped !== undefined) cut(stopped);
  return stopped !== undefined;
}

function cut(connection: Connection): void {
  connection.all.open.delete(connection);
  connection.accepted.destroy();
}
