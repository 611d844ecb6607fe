/** TLS servers on addresses of the loopback network, for scans. */
import { once } from 'node:events';
import { createServer as createTcpServer, type Server } from 'node:net';
import type { TestContext } from 'node:test';
import { createServer } from 'node:tls';

/** A server with this certificate and key in PEM; `tcp` has none and says something else. Returns how to end it. */
export async function serverAt(
  t: Pick<TestContext, 'after'>,
  { host, port }: { readonly host: string; readonly port: number },
  pem: string | 'tcp',
): Promise<() => Promise<void>> {
  const server: Server =
    pem === 'tcp'
      ? createTcpServer((socket) => {
          socket.on('error', () => undefined).write('220 hello\r\n');
          socket.destroySoon();
        })
      : createServer({ cert: pem, key: pem }, (socket) => socket.on('error', () => undefined).destroySoon());
  server.listen(port, host);
  await once(server, 'listening');
  const end = async () => {
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  t.after(end);
  return end;
}
