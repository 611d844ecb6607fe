/** What handlers return, and the one place that writes it to the socket, whole or piece by piece. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { second } from '../../base/duration.ts';
import type { Problem, ProblemCode } from '../../base/problem.ts';
import { securityHeaders } from './security-headers.ts';

type ReplyHead = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
};

/** An answer that was made before it is sent. */
export type WholeReply = ReplyHead & {
  readonly body: string | Buffer;
  /** The length of the body in bytes, where it is known already; for HEAD it need not be made then. */
  readonly size?: number;
};

/** When a stream has to end: nobody reads it any more, or the server takes its leave. */
export type StreamEnds = { readonly gone: AbortSignal; readonly stopping: AbortSignal };

/** An answer that is made while it is sent, as fast as it is read. What throws cuts the connection off. */
export type StreamedReply = ReplyHead & {
  readonly stream: (ends: StreamEnds) => AsyncIterable<string>;
};

export type Reply = WholeReply | StreamedReply;

/** A JSON answer. Nothing the API says is to be kept by caches unless it carries an entity tag. */
export function json(status: number, value: unknown, headers?: Readonly<Record<string, string>>): WholeReply {
  return jsonText(status, JSON.stringify(value), headers);
}

/** A JSON answer whose text is there already. */
export function jsonText(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): WholeReply {
  return {
    status,
    headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...headers },
    body,
  };
}

/** Done, and there is nothing to say. */
export const noContent: WholeReply = { status: 204, headers: { 'Cache-Control': 'no-store' }, body: '' };

/** The answers to problems whose code says it all, made once: strangers get them again and again. */
const usualReplies = new Map<ProblemCode, WholeReply>();

/** The answer to an error that the caller may see. */
export function problemReply(problem: Problem, headers?: Readonly<Record<string, string>>): WholeReply {
  if (!problem.isUsual || headers !== undefined) return newProblemReply(problem, headers);
  const known = usualReplies.get(problem.code);
  if (known !== undefined) return known;
  const reply = newProblemReply(problem);
  usualReplies.set(problem.code, reply);
  return reply;
}

function newProblemReply(problem: Problem, headers: Readonly<Record<string, string>> = {}): WholeReply {
  return json(problem.status, problem.body, {
    'Content-Type': 'application/problem+json',
    ...(problem.code === 'unauthenticated' && { 'WWW-Authenticate': 'Bearer' }),
    ...(problem.code === 'unavailable' && { 'Retry-After': '5' }),
    ...(problem.retryAfter !== undefined && { 'Retry-After': String(problem.retryAfter) }),
    ...headers,
  });
}

/** All that stands above the body of an answer, its length apart. Whoever writes one writes these. */
export function replyHeaders(
  requestId: string,
  { headers }: Pick<Reply, 'headers'>,
  security: Readonly<Record<string, string>> = securityHeaders,
): Record<string, string | number> {
  return { ...security, 'X-Request-Id': requestId, ...headers };
}

/** Writes status, headers and body in one go; without the body for HEAD and 304 (RFC 9110 §9.3.2, §15.4.5). */
export function writeReply(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  reply: WholeReply,
  security?: Readonly<Record<string, string>>,
): void {
  const { status, body } = reply;
  const headers = replyHeaders(requestId, reply, security);
  if (status === 304 || status === 204) {
    response.writeHead(status, headers);
    endAfterRequest(request, response);
    return;
  }
  const size = reply.size ?? Buffer.byteLength(body);
  headers['Content-Length'] = size;
  response.writeHead(status, headers);
  // Where each character is a byte it is ASCII, which needs no encoding.
  const encoding = typeof body === 'string' && body.length === size ? 'latin1' : 'utf8';
  endAfterRequest(request, response, request.method === 'HEAD' ? '' : body, encoding);
}

/** How long a client may be silent in the middle of a request that has its answer. */
const patience = second;

/**
 * Ends an answer with its last bytes. Where the connection ends with it, that waits until the client has sent its request
 * or is silent: closing it over what still comes would take the answer back (RFC 9112 §9.6).
 */
function endAfterRequest(
  request: IncomingMessage,
  response: ServerResponse,
  last: string | Buffer = '',
  encoding: 'latin1' | 'utf8' = 'utf8',
): void {
  if (response.shouldKeepAlive || request.complete) {
    if (last.length <= largestPiece) response.end(last, encoding);
    else endInPieces(response, Buffer.isBuffer(last) ? last : Buffer.from(last, encoding), 0);
    return;
  }
  response.flushHeaders();
  if (last.length > 0) response.write(last, encoding);
  const silence = setTimeout(() => response.end(), patience);
  request.on('data', () => silence.refresh());
  request.once('close', () => {
    clearTimeout(silence);
    response.end();
  });
}

/** Bytes that are handed to a connection at once: with TLS they are copied, also where the client never reads. */
const largestPiece = 16_384;

/** Ends an answer with the bytes from `at`, no faster than they are read. */
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
 * Writes status and headers at once and then the pieces as they are made, never faster than they are read. Returns
 * whether somebody was there until its end. Throws what the stream throws; the connection is cut off then, so that nobody
 * takes what there is for the whole.
 */
export async function writeStream(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  reply: StreamedReply,
  stopping: AbortSignal,
  security?: Readonly<Record<string, string>>,
): Promise<boolean> {
  response.writeHead(reply.status, replyHeaders(requestId, reply, security));
  if (request.method === 'HEAD') {
    endAfterRequest(request, response);
    return true;
  }
  const gone = goneSignal(response);
  response.flushHeaders();
  try {
    for await (const piece of reply.stream({ gone, stopping })) {
      if (gone.aborted) return false;
      if (!response.write(piece) && !gone.aborted) await once(response, 'drain', { signal: gone });
    }
    endAfterRequest(request, response);
    return !gone.aborted;
  } catch (error) {
    if (gone.aborted) return false;
    response.destroy();
    throw error;
  }
}

/** Aborted when the connection of a response is gone, or the response has ended. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (response.closed) gone.abort();
  else response.once('close', () => gone.abort());
  return gone.signal;
}
