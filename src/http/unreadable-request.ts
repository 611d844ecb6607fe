/** What arrives on a connection and is no request: it is answered by a problem with a request id, like all else. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { Problem } from '../base/problem.ts';
import { problemReply, replyHeaders } from './reply.ts';
import type { ServerContext } from './server-context.ts';

/** Answers what Node's parser refused, and closes the connection. The bytes themselves, which may hold a key, are not logged. */
export function refuseUnreadable(
  { vault: { log } }: ServerContext,
  requestId: string,
  { code }: NodeJS.ErrnoException,
  socket: Duplex,
): void {
  if (!socket.writable || code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const problem = new Problem(code === 'HPE_HEADER_OVERFLOW' ? 'payload_too_large' : 'invalid_request');
  const reply = problemReply(problem);
  const { status, body } = reply;
  const lines = Object.entries({
    ...replyHeaders(requestId, reply),
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`, () =>
    socket.destroy(),
  );
  log.info({ request_id: requestId, status, reason: code }, 'request');
}
