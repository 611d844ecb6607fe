/** Tests the proxy in front of PostgreSQL clusters, with members that only answer what a test sets. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ProxiedMember, primaryProxy } from './primary-proxy.ts';

type Member = ProxiedMember & {
  /** The timeline of a primary; `standby` answers so; `frozen` never answers. */
  role: number | 'standby' | 'frozen';
  /** How often the proxy asked. */
  asked: number;
  /** Stops answering for Patroni, as if killed. */
  readonly killPatroni: () => void;
};

/** Its server sends its name to each client, and then what the client sends. */
async function member(t: TestContext, name: string, role: Member['role']): Promise<Member> {
  const pending = new Set<ServerResponse>();
  const sockets = new Set<Socket>();
  const patroni = createHttpServer((_, response) => {
    one.asked += 1;
    if (one.role === 'frozen') pending.add(response);
    else if (one.role === 'standby') response.writeHead(503).end('{"timeline":9}');
    else response.end(JSON.stringify({ timeline: one.role }));
  });
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.write(`${name}:`);
    socket.pipe(socket);
  });
  const killPatroni = () => {
    patroni.close();
    patroni.closeAllConnections();
  };
  const ports = { rest: await listen(patroni), sql: await listen(server) };
  t.after(() => {
    killPatroni();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const one: Member = { name, ports, role, asked: 0, killPatroni };
  return one;
}

async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(5);
}

/** Waits until the proxy got, or gave up, an answer to a question that it asks after this call. */
async function askedAgain(one: Member): Promise<void> {
  const { asked } = one;
  // One question may be under way.
  await until(() => one.asked >= asked + 3);
}

/** Collects what a connection receives, and the code of the error that ends it. */
function open(t: TestContext, port: number) {
  const facts = { received: '', end: '' };
  const socket = connect(port, '127.0.0.1').setEncoding('utf8');
  socket.on('data', (text: string) => {
    facts.received += text;
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    facts.end = error.code ?? '';
  });
  t.after(() => socket.destroy());
  return { facts, socket };
}

test('connections go to the primary, and are reset when the role moves', async (t) => {
  const [a, b] = [await member(t, 'a', 1), await member(t, 'b', 'standby')];
  const proxy = await primaryProxy(t, [a, b]);
  await until(() => proxy.target() === 'a');
  const first = open(t, proxy.port);
  first.socket.write('hello');
  await until(() => first.facts.received === 'a:hello');
  // A former primary may claim the role for a moment longer.
  b.role = 2;
  await until(() => first.facts.end === 'ECONNRESET');
  assert.equal(proxy.target(), 'b');
  const second = open(t, proxy.port);
  await until(() => second.facts.received === 'b:');
  a.role = 'standby';
  await askedAgain(a);
  second.socket.write('still');
  await until(() => second.facts.received === 'b:still');
});

test('existing and new connections are reset if there is no primary', async (t) => {
  const [a, b] = [await member(t, 'a', 1), await member(t, 'b', 'standby')];
  const proxy = await primaryProxy(t, [a, b]);
  await until(() => proxy.target() === 'a');
  const before = open(t, proxy.port);
  await until(() => before.facts.received === 'a:');
  a.killPatroni();
  await until(() => before.facts.end === 'ECONNRESET');
  assert.equal(proxy.target(), undefined);
  const after = open(t, proxy.port);
  await until(() => after.facts.end === 'ECONNRESET');
  assert.equal(after.facts.received, '');
});

test('a frozen primary keeps its connections until another member is primary', async (t) => {
  const [a, b] = [await member(t, 'a', 1), await member(t, 'b', 'standby')];
  const proxy = await primaryProxy(t, [a, b]);
  await until(() => proxy.target() === 'a');
  const held = open(t, proxy.port);
  await until(() => held.facts.received === 'a:');
  a.role = 'frozen';
  await askedAgain(a);
  assert.equal(proxy.target(), 'a');
  assert.equal(held.facts.end, '');
  b.role = 2;
  await until(() => held.facts.end === 'ECONNRESET');
  assert.equal(proxy.target(), 'b');
});
