/** A forward proxy in the test process that records requests: CONNECT for https, absolute URLs for http. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';

export type ForwardProxy = {
  readonly url: string;
  /** `CONNECT host:port` or `GET http://…`, in order. */
  readonly asked: string[];
  /** Their Proxy-Authorization headers. */
  readonly credentials: (string | undefined)[];
};

export type ForwardProxyOptions = {
  /** Responds to CONNECT with this status line only; `silent` never responds. */
  readonly refusal?: string;
  /** Called for each CONNECT. */
  readonly onConnect?: () => void;
};

/** Starts a proxy. It stops with all its tunnels when the test ends. */
export async function forwardProxy(
  t: Pick<TestContext, 'after'>,
  { refusal, onConnect }: ForwardProxyOptions = {},
): Promise<ForwardProxy> {
  const asked: string[] = [];
  const credentials: (string | undefined)[] = [];
  const sockets = new Set<Duplex>();
  const note = ({ method, url, headers }: IncomingMessage) => {
    asked.push(`${method} ${url}`);
    credentials.push(headers['proxy-authorization']);
  };
  const server = createServer((incoming, response) => {
    note(incoming);
    const onward = request(incoming.url ?? '', { method: incoming.method ?? 'GET' }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(onward);
  });
  server.on('connect', (incoming: IncomingMessage, socket: Socket) => {
    note(incoming);
    sockets.add(socket);
    socket.on('error', () => undefined);
    onConnect?.();
    if (refusal === 'silent') return;
    if (refusal !== undefined) {
      socket.end(`HTTP/1.1 ${refusal}\r\n\r\n`);
      return;
    }
    const { hostname, port } = new URL(`http://${incoming.url}`);
    const onward = connect(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    sockets.add(onward);
    onward.on('error', () => socket.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, credentials };
}
