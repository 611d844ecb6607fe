/**
 * A relay between client and server, for tests of what gets lost between: answers are held back, connections are cut.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

export type Relay = {
  readonly port: number;
  /** How many connections it has accepted. */
  readonly accepted: () => number;
  /** How many of them are open. */
  readonly open: () => number;
  /** Whether it passes on what clients send, and what the server answers. */
  readonly pass: (directions: { readonly requests: boolean; readonly answers: boolean }) => void;
  /** Resolves when a client next sends this text. */
  readonly sent: (text: string) => Promise<void>;
  /** Ends all connections at once. */
  readonly cut: () => void;
};

/** Starts one to a port of 127.0.0.1; it ends with the test. Without a port it accepts connections and stays silent. */
export async function startRelay(t: Pick<TestContext, 'after'>, port?: number): Promise<Relay> {
  let passes = { requests: true, answers: true };
  let accepted = 0;
  const sockets = new Set<Socket>();
  const clients = new Set<Socket>();
  const watchers = new Set<{ readonly text: string; readonly seen: () => void }>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // Being cut is what it is for.
    socket.on('error', () => socket.destroy());
  };
  const server = createServer((client) => {
    accepted += 1;
    clients.add(client);
    client.on('close', () => clients.delete(client));
    keep(client);
    const target = port === undefined ? undefined : connect(port, '127.0.0.1');
    if (target !== undefined) keep(target);
    client.on('data', (data) => {
      if (passes.requests) target?.write(data);
      for (const watcher of watchers) if (data.includes(watcher.text)) watcher.seen();
    });
    target?.on('data', (data) => {
      if (passes.answers) client.write(data);
    });
    client.on('close', () => target?.destroy());
    target?.on('close', () => client.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  t.after(() => {
    server.close();
    cut();
  });
  return {
    port: (server.address() as AddressInfo).port,
    accepted: () => accepted,
    open: () => clients.size,
    pass: (directions) => {
      passes = directions;
    },
    sent: (text) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const watcher = { text, seen: resolve };
      watchers.add(watcher);
      return promise.finally(() => watchers.delete(watcher));
    },
    cut,
  };
}
