/** What handlers return, and the one place that writes it to the socket. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Problem } from '../base/problem.ts';

export type Reply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** The length to declare where the body was not made, for HEAD. */
  readonly size?: number;
};

/** A JSON answer. Nothing the API says is to be kept by caches unless it carries an entity tag. */
export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return {
    status,
    headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...headers },
    body: JSON.stringify(value),
  };
}

/** The answer to an error that the caller may see. */
export function problemReply(problem: Problem, headers: Readonly<Record<string, string>> = {}): Reply {
  return json(problem.status, problem.body, {
    'Content-Type': 'application/problem+json',
    ...(problem.code === 'unauthenticated' && { 'WWW-Authenticate': 'Bearer' }),
    ...(problem.code === 'unavailable' && { 'Retry-After': '5' }),
    ...headers,
  });
}

/** Writes status, headers and body in one go; without the body for HEAD and 304 (RFC 9110 §9.3.2, §15.4.5). */
export function writeReply(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  reply: Reply,
): void {
  const bodiless = reply.status === 304 || reply.status === 204;
  const headers: Record<string, string | number> = { 'X-Request-Id': requestId, ...reply.headers };
  if (!bodiless) headers['Content-Length'] = reply.size ?? Buffer.byteLength(reply.body);
  response.writeHead(reply.status, headers);
  if (bodiless || request.method === 'HEAD') response.end();
  else response.end(reply.body);
}
