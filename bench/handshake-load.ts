/**
 * Opens new HTTPS connections one after the other on each of 32 lanes, with one request each. A separate program, so
 * that it runs on its own core. Its arguments are the URL, the seconds and, to resume sessions, `resume`.
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

/** Resolves after the response with the session for the next connection. */
function connectOnce(session: Buffer | undefined): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    let next = session;
    const socket = connect({
      ...{ host: '127.0.0.1', port: Number(port) },
      ...(mode === 'resume' && session !== undefined && { session }),
      // The server is our own, and verification would only add work to the client.
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
