/**
 * New HTTPS connections, one after the other on each of 32 lanes: a handshake, one request, and the end. A program of its own,
 * so that it has a core of its own; its arguments are the URL, the seconds and, where sessions are to be resumed,
 * `resume`.
 */
import { connect } from 'node:tls';
import { connections } from './load.ts';

const [, , url = '', seconds = '1', mode] = process.argv;
const { port, host } = new URL(url);
const until = performance.now() + Number(seconds) * 1000;
let done = 0;
let resumed = 0;

await Promise.all(Array.from({ length: connections }, lane));
console.log(JSON.stringify({ done, resumed }));

async function lane(): Promise<void> {
  let session: Buffer | undefined;
  while (performance.now() < until) session = await connectOnce(session);
}

/** Resolves when the answer is there, with the session for the next connection. */
function connectOnce(session: Buffer | undefined): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    let next = session;
    const socket = connect({
      ...{ host: '127.0.0.1', port: Number(port) },
      ...(mode === 'resume' && session !== undefined && { session }),
      // The server is our own, and what a client checks is none of its work.
      rejectUnauthorized: false,
    });
    socket.on('session', (ticket) => {
      next = ticket;
    });
    socket.on('error', reject);
    socket.once('secureConnect', () => {
      if (socket.isSessionReused()) resumed += 1;
      socket.write(`GET /api/v1/health HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    });
    socket.on('data', () => undefined);
    socket.once('close', () => {
      done += 1;
      resolve(next);
    });
  });
}
