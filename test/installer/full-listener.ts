/** A TCP port of this machine on which connections time out, as behind a firewall that drops packets. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

const listener = `
  const server = require('node:net').createServer();
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port));`;

/**
 * Returns the port. A stopped process listens there and accepts nothing; once its queue is full, the kernel drops what
 * asks for a connection.
 */
export async function fullListener(t: Pick<TestContext, 'after'>): Promise<number> {
  const child = spawn(process.execPath, ['-e', listener], { stdio: ['ignore', 'pipe', 'inherit'] });
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    child.kill('SIGKILL');
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(line.toString());
  child.kill('SIGSTOP');
  for (let waiting = 0; waiting === 0; ) {
    assert(sockets.length < 100, 'the queue never fills');
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    sockets.push(socket);
    const connected = once(socket, 'connect').then(() => true);
    // On loopback a connection takes microseconds.
    if (!(await Promise.race([connected, sleep(500, false)]))) waiting += 1;
  }
  return port;
}
