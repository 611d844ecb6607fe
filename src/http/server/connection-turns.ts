/**
 * The order of responses on a connection: they are sent in the order of their requests, including rejections of invalid
 * data, and nothing is read after an ambiguous request (RFC 9112 §11.2).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { isBeingRead, shortRest } from '../request/request-body.ts';
import { authorityOf } from '../request/request-target.ts';
import { closeLingering, isLingering, withinPatience } from './lingering-close.ts';

type Latest = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** How many bytes of a body that nothing reads may still be parsed. */
  spare: number;
  /** Called when none may. */
  spent?: () => void;
};

type Turns = {
  /** Open responses in order; the first ones may have finished. Replaced, as an array that grows reserves space. */
  begun: readonly ServerResponse[];
  /** The last request; its body may still arrive. */
  latest: Latest | undefined;
  /** The connection is closed after the open responses. */
  isLast: boolean;
  /** A rejection is waiting. */
  isRefused: boolean;
};

const connections = new WeakMap<Duplex, Turns>();

/** Host header (RFC 9110 §7.2, RFC 3986 §3.2.2); the name may be empty. */
const hostForm = /^([\w.~%!$&'()*+,;=-]*|\[[0-9A-Fa-fv:.]+\])(:\d*)?$/;

/**
 * Registers a request in order. `over` if the connection was to be closed before it: it must be ignored, because the
 * client or a proxy may not regard it as a request. `ambiguous` if it must be rejected.
 */
export function takeTurn(request: IncomingMessage, response: ServerResponse): 'over' | 'ambiguous' | 'taken' {
  const turns = turnsOf(request.socket);
  if (turns.isLast) return 'over';
  turns.begun = [...turns.begun.filter(({ closed }) => !closed), response];
  turns.latest = { request, response, spare: shortRest };
  const isUnclear = isAmbiguous(request);
  // Node drops data that arrived with an upgrade request, so later requests would be unreliable.
  if (isUnclear || request.headers.upgrade !== undefined) {
    turns.isLast = true;
    response.shouldKeepAlive = false;
  }
  return isUnclear ? 'ambiguous' : 'taken';
}

/**
 * Runs `answer` after the previous response has finished: usually immediately, because the next request is not parsed
 * earlier, except when it arrived together with the end of a body. Never runs if the connection is closed by then.
 */
export function inTurn(request: IncomingMessage, answer: () => void): void {
  const before = turnsOf(request.socket).begun.at(-2);
  if (before === undefined || before.closed) answer();
  else before.once('close', () => request.socket.destroyed || answer());
}

/**
 * What a connection waits for: a `request`, or the `body` of the last one; `none` before its response has finished, and
 * `nothing more` if the connection is closed after it. `unwanted` is the long rest of a body whose request was
 * answered.
 */
export type NextBytes = 'request' | 'body' | 'none' | 'nothing more' | 'unwanted';

/** What may be parsed now. */
export function nextBytes(socket: Duplex): NextBytes {
  if (isLingering(socket)) return 'nothing more';
  const turns = connections.get(socket);
  if (turns?.latest === undefined) return turns?.isLast ? 'nothing more' : 'request';
  if (turns.isRefused) return 'nothing more';
  const { request, response } = turns.latest;
  if (!request.complete) {
    const isHeld = turns.begun.some((one) => one !== response && !one.closed);
    return isHeld ? 'none' : nextOfBody(turns.latest);
  }
  if (turns.isLast) return 'nothing more';
  return response.closed ? 'request' : 'none';
}

/**
 * A body stays in the socket until a reader takes it or it is known that none will: each chunk of it, which has one
 * byte if the client likes, would be an object.
 */
function nextOfBody({ request, response, spare }: Latest): NextBytes {
  if (isBeingRead(request)) return 'body';
  if (request.readableFlowing !== true) return 'none';
  if (spare > 0) return 'body';
  return response.closed ? 'unwanted' : 'none';
}

/**
 * Counts bytes of a body before they are parsed, and returns how many of them may be: all if they are read. Of others a
 * short rest is parsed, so that the connection can be used again.
 */
export function takeBody(socket: Duplex, size: number): number {
  const latest = connections.get(socket)?.latest;
  if (latest === undefined || isBeingRead(latest.request)) return size;
  const taken = Math.min(size, latest.spare);
  latest.spare -= taken;
  if (latest.spare === 0) latest.spent?.();
  return taken;
}

/**
 * Resolves when the rest of a body in chunks, which nothing reads, has arrived or turns out to be long: the response
 * says whether the connection can be used again. Undefined for all other requests.
 */
export function restInChunks(request: IncomingMessage): Promise<void> | undefined {
  const { complete, headers, socket } = request;
  const latest = connections.get(socket)?.latest;
  if (complete || headers['transfer-encoding'] === undefined || latest?.request !== request) return undefined;
  if (latest.spare === 0 || request.destroyed || isBeingRead(request)) return undefined;
  return withinPatience((resolve) => {
    latest.spent = resolve;
    request.once('end', resolve).once('close', resolve).resume();
  });
}

/** Whether the last request has a body in chunks. */
export function isInChunks(socket: Duplex): boolean {
  return connections.get(socket)?.latest?.request.headers['transfer-encoding'] !== undefined;
}

/** Whether the client may still be sending its last request. */
export function isSending(socket: Duplex): boolean {
  return connections.get(socket)?.latest?.request.complete === false;
}

/** The unfinished responses of a connection. */
export function openAnswers(socket: Duplex): ServerResponse[] {
  return connections.get(socket)?.begun.filter(({ closed }) => !closed) ?? [];
}

/**
 * Runs `refuse` once, after the previous responses, unless they closed the connection. If the rest of a request is
 * rejected, this is its response or, if that has started, the connection is closed without another.
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
    if (isAnswered) closeLingering(socket);
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
 * Whether servers could interpret the request differently: several hosts or credentials, an invalid host or one that
 * differs from the target (RFC 9112 §3.2), a transfer coding other than `chunked` or in HTTP/1.0 (§6.1), or a version
 * other than 1.x, which would have other framing.
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

/** Whether a target in absolute form names another host than the header, which must be equal (RFC 9112 §3.2.2). */
function isElsewhere(target: string | undefined, host: string | undefined): boolean {
  const authority = authorityOf(target);
  return authority !== undefined && host !== undefined && authority.toLowerCase() !== host.toLowerCase();
}

/** `name` is in lower case. */
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
