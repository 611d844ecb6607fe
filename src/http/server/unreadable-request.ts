/** Handles data that is not a valid request or arrived too late: the response is a problem with a request id. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Log } from '../../base/log.ts';
import { Problem, type ProblemCode } from '../../base/problem.ts';
import { problemReply, replyHeaders } from '../request/reply.ts';
import type { ServerContext } from '../request/server-context.ts';
import type { Refusals } from './connection-limits.ts';
import { afterTurns } from './connection-turns.ts';
import { plainOnHttps } from './https-redirect.ts';
import { closeLingering } from './lingering-close.ts';

/** Problem codes of Node's errors; all others mean that the data is not HTTP. */
const problems: Readonly<Record<string, ProblemCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
};

/** Rejects connections that exceed a limit, and logs them. */
export function connectionRefusals(context: ServerContext, nextId: () => string): Refusals {
  const { log } = context.vault;
  return {
    unreadable: (error, socket) => refuseUnreadable(context, nextId(), error, socket),
    tooMany: (socket) => {
      const id = nextId();
      logUnreadable(log, id, tooMany, 'too many connections', socket);
      return answerText(id, tooMany);
    },
    stalled: ({ remoteAddress: ip }) =>
      log.info({ ip }, 'client stopped reading the response; connection closed'),
    full: () =>
      log.warn(
        {},
        'connection limit (--max-connections) reached; closing idle connections to accept new ones',
      ),
  };
}

const tooMany = new Problem('unavailable', {
  detail: 'Too many connections; retry in a moment.',
});

/** Rejects CONNECT, which is for proxies; Node would close the connection silently. */
export function refuseTunnel(context: ServerContext, requestId: string, socket: Duplex): void {
  // Node no longer handles errors of the connection.
  socket.on('error', () => socket.destroy());
  refuseUnreadable(context, requestId, { name: '', message: '', code: 'CONNECT' }, socket);
}

/**
 * Responds in order to what Node's parser rejected, and closes the connection. The data may contain a key and is not
 * logged.
 */
export function refuseUnreadable(
  { vault: { log } }: ServerContext,
  requestId: string,
  { code, rawPacket }: NodeJS.ErrnoException & { readonly rawPacket?: Buffer },
  socket: Duplex,
): void {
  // Browsers open connections in advance; an unused one needs no response.
  const isUnused = code === 'ERR_HTTP_REQUEST_TIMEOUT' && 'bytesRead' in socket && socket.bytesRead === 0;
  if (!socket.writable || code === 'ECONNRESET' || isUnused) {
    socket.destroy();
    return;
  }
  afterTurns(socket, () => {
    const problem = new Problem(problems[code ?? ''] ?? 'invalid_request');
    const text = answerText(requestId, problem);
    closeLingering(socket, isHead(rawPacket) ? withoutBody(text) : text);
    logUnreadable(log, requestId, problem, code, socket);
  });
}

/** Whether what could not be parsed began with a HEAD request. Its client would take a body for the next response. */
function isHead(data: Buffer | undefined): boolean {
  return data?.toString('latin1', 0, 5) === 'HEAD ';
}

function withoutBody(text: string): string {
  return text.slice(0, text.indexOf('\r\n\r\n') + 4);
}

/** How plain HTTP begins: a method and a space. */
const plainHttp = /^[A-Z]{3,8} /;

/** Closes a connection to the HTTPS port that does not begin with TLS; plain HTTP gets an error first. */
export function refusePlain(
  { vault: { log } }: ServerContext,
  requestId: string,
  socket: Duplex,
  bytes: Buffer,
): void {
  if (!socket.writable || !plainHttp.test(bytes.toString('latin1', 0, 16))) {
    socket.destroy();
    return;
  }
  socket.end(answerText(requestId, plainOnHttps), () => socket.destroy());
  logUnreadable(log, requestId, plainOnHttps, 'plain HTTP', socket);
}

/** The log line of an invalid request: without method, duration and actor. */
function logUnreadable(
  log: Log,
  requestId: string,
  { status }: Problem,
  reason: string | undefined,
  socket: Duplex,
): void {
  const line = { request_id: requestId, route: 'none', status, actor: 'anonymous', ip: peerOf(socket) };
  log.info({ ...line, reason }, 'request');
}

/** The peer address; without headers, the client behind it is unknown. */
function peerOf(socket: Duplex): string | undefined {
  return 'remoteAddress' in socket ? (socket as Socket).remoteAddress : undefined;
}

/** A complete response, after which the connection is closed. */
function answerText(requestId: string, problem: Problem): string {
  const reply = problemReply(problem);
  const { status, body } = reply;
  const lines = Object.entries({
    ...replyHeaders(requestId, reply),
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}
