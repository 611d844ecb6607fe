/** Replies of handlers, and the only place that writes them to the socket, at once or as a stream. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { escapedJson } from '../../base/printable-text.ts';
import { commandLinePreference, type Problem, type ProblemCode } from '../../base/problem.ts';
import type { FileName } from '../../domain/versions/formats.ts';
import { shortRest } from './request-body.ts';
import { securityHeaders } from './security-headers.ts';

type ReplyHead = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
};

/** A response that is complete before it is sent. */
export type WholeReply = ReplyHead & {
  readonly body: string | Buffer;
  /** The length of the body in bytes, if known; for HEAD, the body then need not be created. */
  readonly size?: number;
  /** The request waits until there is another response, for a while. */
  readonly wait?: RequestedWait;
};

/** A wait for another version of a certificate than the client has. */
export type RequestedWait = {
  readonly name: string;
  readonly version: number;
  /** What the client requests; it is counted as unchanged when the response is sent after all. */
  readonly file: FileName;
  readonly seconds: number;
};

/** When a stream must end: the client disconnected, or the server stops. */
export type StreamEnds = { readonly gone: AbortSignal; readonly stopping: AbortSignal };

/** A response that is generated as fast as the client reads it. If it throws, the connection is closed. */
export type StreamedReply = ReplyHead & {
  readonly stream: (ends: StreamEnds) => AsyncIterable<string>;
};

export type Reply = WholeReply | StreamedReply;

/** A JSON response, with what a terminal would act on escaped. Caches must not store it unless it has an entity tag. */
export function json(status: number, value: unknown, headers?: Readonly<Record<string, string>>): WholeReply {
  return jsonBody(status, escapedJson(JSON.stringify(value)), headers);
}

/** A JSON response from existing text, which may be encoded. */
export function jsonBody(
  status: number,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): WholeReply {
  return {
    status,
    headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...headers },
    body,
  };
}

/** Success without a body. */
export const noContent: WholeReply = { status: 204, headers: { 'Cache-Control': 'no-store' }, body: '' };

/** Cached responses to problems without details, because unauthenticated clients get them often. */
const defaultReplies = new Map<ProblemCode, WholeReply>();

/** The response to an error that the client may see. */
export function problemReply(problem: Problem, headers?: Readonly<Record<string, string>>): WholeReply {
  if (!problem.isUsual || headers !== undefined) return newProblemReply(problem, headers);
  const known = defaultReplies.get(problem.code);
  if (known !== undefined) return known;
  const reply = newProblemReply(problem);
  defaultReplies.set(problem.code, reply);
  return reply;
}

/** The response to an error for such a client. */
export function problemReplyForCommands(problem: Problem): WholeReply {
  return newProblemReply(problem, { 'Preference-Applied': commandLinePreference }, problem.bodyForCommands);
}

function newProblemReply(
  problem: Problem,
  headers: Readonly<Record<string, string>> = {},
  body = problem.body,
): WholeReply {
  return json(problem.status, body, {
    'Content-Type': 'application/problem+json',
    ...(problem.code === 'unauthenticated' && { 'WWW-Authenticate': 'Bearer' }),
    ...(problem.code === 'unavailable' && { 'Retry-After': '5' }),
    ...(problem.retryAfter !== undefined && { 'Retry-After': String(problem.retryAfter) }),
    ...headers,
  });
}

/** All headers of a response except its length. Every response must have them. */
export function replyHeaders(
  requestId: string,
  { headers }: Pick<Reply, 'headers'>,
  security: Readonly<Record<string, string>> = securityHeaders,
): Record<string, string | number> {
  return { ...security, 'X-Request-Id': requestId, ...headers };
}

/** Writes status, headers and body at once; without the body for HEAD and 304 (RFC 9110 §9.3.2, §15.4.5). */
export function writeReply(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  reply: WholeReply,
  security?: Readonly<Record<string, string>>,
): void {
  const { status, body } = reply;
  announceEnd(request, response);
  const headers = replyHeaders(requestId, reply, security);
  if (status === 304 || status === 204) {
    response.writeHead(status, headers).end();
    return;
  }
  const size = reply.size ?? Buffer.byteLength(body);
  headers['Content-Length'] = size;
  response.writeHead(status, headers);
  // If each character is one byte, the text is ASCII and needs no encoding.
  const encoding = typeof body === 'string' && body.length === size ? 'latin1' : 'utf8';
  const last = request.method === 'HEAD' ? '' : body;
  if (last.length <= largestPiece) response.end(last, encoding);
  else endInPieces(response, Buffer.isBuffer(last) ? last : Buffer.from(last, encoding), 0);
}

/**
 * Announces the end of the connection if the rest of the request is, or may be, too long to be received. Clients then
 * need not send it, and send no other request after it.
 */
function announceEnd({ complete, headers }: IncomingMessage, response: ServerResponse): void {
  const isEndless = headers['transfer-encoding'] !== undefined;
  if (!complete && (isEndless || Number(headers['content-length'] ?? 0) > shortRest))
    response.shouldKeepAlive = false;
}

/** How many bytes are passed to a connection at once: TLS copies them, even if the client never reads. */
const largestPiece = 16_384;

/** Ends a response with the bytes from `at`, as fast as the client reads them. */
function endInPieces(response: ServerResponse, bytes: Buffer, at: number): void {
  let next = at;
  while (bytes.length - next > largestPiece) {
    const piece = bytes.subarray(next, next + largestPiece);
    next += largestPiece;
    if (!response.write(piece)) {
      response.once('drain', () => endInPieces(response, bytes, next));
      return;
    }
  }
  response.end(bytes.subarray(next));
}

/**
 * Writes status and headers immediately and then the pieces as they are generated, as fast as the client reads them.
 * Returns whether the client stayed until the end. If the stream throws, rethrows and closes the connection, so that a
 * partial response is not mistaken for a complete one.
 */
export async function writeStream(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  reply: StreamedReply,
  stopping: AbortSignal,
  security?: Readonly<Record<string, string>>,
): Promise<boolean> {
  announceEnd(request, response);
  response.writeHead(reply.status, replyHeaders(requestId, reply, security));
  if (request.method === 'HEAD') {
    response.end();
    return true;
  }
  const gone = goneSignal(response);
  response.flushHeaders();
  try {
    for await (const piece of reply.stream({ gone, stopping })) {
      if (gone.aborted) return false;
      if (!response.write(piece) && !gone.aborted) await once(response, 'drain', { signal: gone });
    }
    response.end();
    return !gone.aborted;
  } catch (error) {
    if (gone.aborted) return false;
    response.destroy();
    throw error;
  }
}

/** Aborted when the connection of a response is closed, or the response has ended. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (response.closed) gone.abort();
  else response.once('close', () => gone.abort());
  return gone.signal;
}
