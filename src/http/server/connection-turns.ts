/**
 * Whose turn it is on a connection: answers go out in the order of their requests, also the one that refuses what is no
 * request, and nothing is taken from a connection after a request that could be read in two ways (RFC 9112 §11.2).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { authorityOf } from '../request/request-target.ts';

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
 * Runs `answer` when the answer before it is over: at once, as a rule, since the next request is not parsed before. It is where
 * it stands in one piece with the end of a body. Never runs where the connection is gone by then.
 */
export function inTurn(request: IncomingMessage, answer: () => void): void {
  const before = turnsOf(request.socket).begun.at(-2);
  if (before === undefined || before.closed) answer();
  else before.once('close', () => request.socket.destroyed || answer());
}

/**
 * What a connection waits for: bytes of a `request`, or of the `body` of the last one; `none` before its answer is over, and
 * `nothing more` where the connection ends with it.
 */
export type NextBytes = 'request' | 'body' | 'none' | 'nothing more';

/** What may be parsed now. */
export function nextBytes(socket: Duplex): NextBytes {
  const turns = connections.get(socket);
  if (turns?.latest === undefined) return turns?.isLast ? 'nothing more' : 'request';
  if (turns.isRefused) return 'nothing more';
  const { request, response } = turns.latest;
  if (!request.complete) {
    const isHeld = turns.begun.some((one) => one !== response && !one.closed);
    return isHeld ? 'none' : 'body';
  }
  if (turns.isLast) return 'nothing more';
  return response.closed ? 'request' : 'none';
}

/** The answers of a connection that are not over yet. */
export function openAnswers(socket: Duplex): ServerResponse[] {
  return connections.get(socket)?.begun.filter(({ closed }) => !closed) ?? [];
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
 * Whether servers differ in how they read the request: several hosts or credentials, a host that is none or another than in
 * the target (RFC 9112 §3.2), a transfer coding besides `chunked` or in HTTP/1.0 (§6.1), or another version than 1.x, which
 * would have other frames.
 */
function isAmbiguous({ headers, rawHeaders, httpVersion, url }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  return (
    !httpVersion.startsWith('1.') ||
    isRepeated(rawHeaders, 'host') ||
    (headers.authorization !== undefined && isRepeated(rawHeaders, 'authorization')) ||
    !hostForm.test(headers.host ?? '') ||
    isElsewhere(url, headers.host) ||
    (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0'))
  );
}

/** Whether a target in absolute form names another host than the header, which has to be the same (RFC 9112 §3.2.2). */
function isElsewhere(target: string | undefined, host: string | undefined): boolean {
  const authority = authorityOf(target);
  return authority !== undefined && host !== undefined && authority.toLowerCase() !== host.toLowerCase();
}

/** `name` in lower case. */
function isRepeated(rawHeaders: readonly string[], name: string): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const one = rawHeaders[index];
    if (one?.length === name.length && one.toLowerCase() === name) count += 1;
  }
  return count > 1;
}

function turnsOf(socket: Duplex): Turns {
  const known = connections.get(socket);
  if (known !== undefined) return known;
  const turns: Turns = { begun: [], latest: undefined, isLast: false, isRefused: false };
  connections.set(socket, turns);
  return turns;
}
