/**
 * An HTTP balancer in front of several nodes of one vault, as strict as balancers can be: each request goes to the next
 * node, also on the same connection, and a request is repeated at another node only if the first received no byte of
 * it.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

export type Balancer = {
  readonly url: string;
  /** The nodes that get requests now. */
  readonly ready: () => string[];
  /** How many requests were sent to each node. */
  readonly sent: ReadonlyMap<string, number>;
  readonly stop: () => Promise<void>;
};

export type BalancerOptions = {
  /** Milliseconds between two questions to a node whether it is ready. */
  readonly interval?: number;
  /** A node that does not answer such a question, or accept a connection, for so many milliseconds is not ready. */
  readonly silence?: number;
  /** How long a node may take to begin its answer to a request, in milliseconds. */
  readonly patience?: number;
};

/** Reports readiness; see src/http/routes/public-routes.ts. */
const readyPath = '/api/v1/ready';

/** Between two parties only (RFC 9110 §7.6.1). */
const hopByHop = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);

type Node = { readonly origin: string; readonly host: string; readonly port: number; ready: boolean };

/**
 * Starts it in front of these nodes (`http://127.0.0.1:8080`), and resolves when it has asked each of them once. It
 * responds 503 if no node is ready, 502 if the node breaks off after it received the request, 504 if the node does not
 * answer. It stops when the test ends.
 */
export async function startBalancer(
  t: Pick<TestContext, 'after'>,
  origins: readonly string[],
  { interval = 100, silence = 1000, patience = 30_000 }: BalancerOptions = {},
): Promise<Balancer> {
  const nodes = origins.map((origin): Node => {
    const { hostname, port } = new URL(origin);
    return { origin, host: hostname, port: Number(port), ready: false };
  });
  const sent = new Map(origins.map((origin) => [origin, 0]));
  const ended = new AbortController();
  let turn = 0;

  /** Connects to the next node that accepts, at most once to each; undefined if none does. */
  const nextNode = async (): Promise<{ node: Node; socket: Socket } | undefined> => {
    const first = turn++;
    for (const index of nodes.keys()) {
      const node = nodes[(first + index) % nodes.length];
      if (!node?.ready) continue;
      const socket = await reach(node, silence);
      if (socket !== undefined) return { node, socket };
      node.ready = false;
    }
    return undefined;
  };

  const server = createServer(async (incoming, response) => {
    const found = await nextNode();
    if (found === undefined) return refuse(response, 503, 'no node is ready');
    const { node, socket } = found;
    sent.set(node.origin, (sent.get(node.origin) ?? 0) + 1);
    forward(incoming, response, socket, patience);
  });
  // Clients decide when to end a connection, not the balancer.
  server.keepAliveTimeout = 0;

  const watch = async (node: Node) => {
    while (!ended.signal.aborted) {
      node.ready = await isReady(node, AbortSignal.any([ended.signal, AbortSignal.timeout(silence)]));
      asked.get(node)?.();
      await sleep(interval, undefined, { signal: ended.signal }).catch(() => undefined);
    }
  };
  const asked = new Map<Node, () => void>();
  const all = nodes.map((node) => new Promise<void>((resolve) => asked.set(node, resolve)));
  const watches = nodes.map(watch);
  await Promise.all(all);
  await once(server.listen(0, '127.0.0.1'), 'listening');

  const stop = async () => {
    ended.abort();
    await Promise.all(watches);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  t.after(stop);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ready: () => nodes.filter(({ ready }) => ready).map(({ origin }) => origin),
    sent,
    stop,
  };
}

async function isReady({ origin }: Node, signal: AbortSignal): Promise<boolean> {
  try {
    const response = await fetch(`${origin}${readyPath}`, { signal });
    await response.body?.cancel();
    return response.ok;
  } catch {
    // It refuses connections, breaks off or is silent.
    return false;
  }
}

/** A connection to the node, or undefined if there is none in time. */
async function reach({ host, port }: Node, silence: number): Promise<Socket | undefined> {
  const socket = connect({ host, port, noDelay: true });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(silence) });
    return socket;
  } catch {
    // Refused, or too late.
    socket.destroy();
    return undefined;
  }
}

/** Sends the request over a connection of its own, and its answer back. The end of either side ends the other. */
function forward(
  incoming: IncomingMessage,
  response: ServerResponse,
  socket: Socket,
  patience: number,
): void {
  const onward = request({
    method: incoming.method ?? 'GET',
    path: incoming.url ?? '/',
    headers: endToEnd(incoming.rawHeaders),
    setHost: false,
    createConnection: () => socket,
  });
  const late = setTimeout(() => {
    refuse(response, 504, 'the node does not answer');
    onward.destroy();
  }, patience);
  onward.on('response', (answer) => {
    clearTimeout(late);
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, endToEnd(answer.rawHeaders));
    answer.on('error', () => response.destroy());
    answer.pipe(response);
  });
  onward.on('error', () => refuse(response, 502, 'the node broke off'));
  response.once('close', () => {
    clearTimeout(late);
    onward.destroy();
  });
  incoming.on('error', () => onward.destroy());
  incoming.pipe(onward);
}

/** Names and values in turn, as they came. */
function endToEnd(raw: readonly string[]): string[] {
  const pairs = raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1] ?? '']] : []));
  return pairs.filter(([name = '']) => !hopByHop.has(name.toLowerCase())).flat();
}

/** Responds with a status of the balancer's own, or breaks off an answer that has begun. */
function refuse(response: ServerResponse, status: number, reason: string): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(status, { 'content-type': 'text/plain', 'x-balancer': reason }).end(`${reason}\n`);
}
