/**
 * Whose turn it is on a connection: answers go out in the order of their requests, also the one that refuses what is no
 * request, and nothing is taken from a connection after a request that could be read in two ways (RFC 9112 §11.2).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

type Turns = {
  /** Begun, in their order; those at the beginning may have ended. */
  readonly begun: ServerResponse[];
  /** What was taken last; its body may still be on its way. */
  latest: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined;
  /** The connection ends with the answers that are open. */
  isLast: boolean;
  /** A refusal waits for its turn. */
  isRefused: boolean;
};

const connections = new WeakMap<Duplex, Turns>();

/** Host as RFC 9110 §7.2 and RFC 3986 §3.2.2 have it; a name may be empty. */
const hostForm = /^([\w.~%!$&'()*+,;=-]*|\[[0-9A-Fa-fv:.]+\])(:\d*)?$/;

/**
 * Takes a request in its turn. `over` where the connection was to end before it: then nothing may come of it, for whoever
 * sent it, or stood before this server, need not have seen it as a request at all. `ambiguous` where it has to be refused.
 */
export function takeTurn(request: IncomingMessage, response: ServerResponse): 'over' | 'ambiguous' | 'taken' {
  const turns = turnsOf(request.socket);
  if (turns.isLast) return 'over';
  while (turns.begun[0]?.closed) turns.begun.shift();
  turns.begun.push(response);
  turns.latest = { request, response };
  const isUnclear = isAmbiguous(request);
  // Node throws away what came along with an offer to upgrade, so that no later request could be relied on.
  if (isUnclear || request.headers.upgrade !== undefined) {
    turns.isLast = true;
    response.shouldKeepAlive = false;
  }
  return isUnclear ? 'ambiguous' : 'taken';
}

/**
 * Runs `refuse` once, when what came before is answered, unless that has closed the connection. Where it is the rest of a
 * request that is refused, this is its answer or, where that has begun, the connection is closed without another.
 */
export function afterTurns(socket: Duplex, refuse: () => void): void {
  const turns = turnsOf(socket);
  if (turns.isRefused) return;
  turns.isRefused = true;
  turns.isLast = true;
  const { latest, begun } = turns;
  const isRest = latest?.request.complete === false;
  const isAnswered = isRest && latest.response.headersSent;
  const open = begun.filter(({ closed }) => !closed);
  if (isRest && !isAnswered && open.at(-1) === latest.response) open.pop();
  let left = open.length;
  const next = () => {
    if (isAnswered) socket.end(() => socket.destroy());
    else if (socket.writable) refuse();
  };
  for (const response of open) {
    response.once('close', () => {
      left -= 1;
      if (left === 0) next();
    });
  }
  if (left === 0) next();
}

/**
 * Whether servers differ in how they read the request: several hosts or a host that is none (RFC 9112 §3.2), a transfer
 * coding besides `chunked` or in HTTP/1.0 (§6.1), or another version than 1.x, which would have other frames.
 */
function isAmbiguous({ headers, rawHeaders, httpVersion }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  return (
    !httpVersion.startsWith('1.') ||
    hostsIn(rawHeaders) > 1 ||
    !hostForm.test(headers.host ?? '') ||
    (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0'))
  );
}

function hostsIn(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

function turnsOf(socket: Duplex): Turns {
  const known = connections.get(socket);
  if (known !== undefined) return known;
  const turns: Turns = { begun: [], latest: undefined, isLast: false, isRefused: false };
  connections.set(socket, turns);
  return turns;
}
