/**
 * Whose turn it is on a connection: answers go out in the order of their requests, also the one that refuses what is no
 * request, and nothing is taken from a connection after a request that could be read in two ways (RFC 9112 §11.2).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

type Turns = {
  /** Begun and not yet ended. */
  readonly open: Set<ServerResponse>;
  /** What was taken last; its body may still be on its way. */
  latest: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined;
  /** The connection ends with the answers that are open. */
  isLast: boolean;
  /** Waits until nothing is open. */
  next: (() => void) | undefined;
};

const connections = new WeakMap<Duplex, Turns>();

/** Host as RFC 9110 §7.2 and RFC 3986 §3.2.2 have it; a name may be empty. */
const hostForm = /^([\w.~%!$&'()*+,;=-]*|\[[0-9A-Fa-fv:.]+\])(:\d*)?$/;

/**
 * Takes a request in its turn. False where the connection was to end before it: then nothing may come of it, for whoever
 * sent it, or stood before this server, need not have seen it as a request at all.
 */
export function takeTurn(request: IncomingMessage, response: ServerResponse): boolean {
  const turns = turnsOf(request.socket);
  if (turns.isLast) return false;
  turns.open.add(response);
  turns.latest = { request, response };
  response.once('close', () => {
    turns.open.delete(response);
    if (turns.open.size === 0) turns.next?.();
  });
  // Node throws away what came along with an offer to upgrade, so that no later request could be relied on.
  if (isAmbiguous(request) || request.headers.upgrade !== undefined) {
    turns.isLast = true;
    response.shouldKeepAlive = false;
  }
  return true;
}

/**
 * Runs `refuse` once, when what came before is answered, unless that has closed the connection. Where it is the rest of a
 * request that is refused, this is its answer or, where that has begun, the connection is closed without another.
 */
export function afterTurns(socket: Duplex, refuse: () => void): void {
  const turns = turnsOf(socket);
  if (turns.next !== undefined) return;
  turns.isLast = true;
  const { latest, open } = turns;
  const isRest = latest?.request.complete === false;
  const isAnswered = isRest && latest.response.headersSent;
  if (isRest && !isAnswered) open.delete(latest.response);
  turns.next = () => {
    if (isAnswered) socket.end(() => socket.destroy());
    else if (socket.writable) refuse();
  };
  if (open.size === 0) turns.next();
}

/**
 * Whether servers differ in how they read the request: several hosts or a host that is none (RFC 9112 §3.2), a transfer
 * coding besides `chunked` or in HTTP/1.0 (§6.1), or another version than 1.x, which would have other frames.
 */
export function isAmbiguous({ headers, rawHeaders, httpVersion }: IncomingMessage): boolean {
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  const coding = headers['transfer-encoding'];
  return (
    !httpVersion.startsWith('1.') ||
    hosts.length > 1 ||
    !hostForm.test(headers.host ?? '') ||
    (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0'))
  );
}

function turnsOf(socket: Duplex): Turns {
  const known = connections.get(socket) ?? {
    open: new Set(),
    latest: undefined,
    isLast: false,
    next: undefined,
  };
  connections.set(socket, known);
  return known;
}
