/**
 * Requests that a client sends ahead of its answers: they wait in the socket, are answered in order, and none is lost.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { z } from 'zod';
import { json } from '../../../src/http/request/reply.ts';
import { type Route, route } from '../../../src/http/request/route.ts';
import { handshake as shake } from '../../harness/http/https-client.ts';
import { httpsServer } from '../../harness/http/https-fixtures.ts';
import { open, readToEnd, requestText } from '../../harness/http/raw.ts';
import { type TestServer, testServer } from '../../harness/http/test-server.ts';

async function handshake(url: string): Promise<TLSSocket> {
  const socket = await shake(url);
  assert(socket instanceof TLSSocket);
  return socket;
}

const hello = route({
  method: 'GET',
  path: '/hello',
  id: 'hello',
  summary: 'Answers at once',
  access: { kind: 'public' },
  replies: { 200: { description: 'a word', schema: z.string() } },
  problems: [],
  handle: async () => json(200, 'hello'),
});

const echo = route({
  ...hello,
  method: 'POST',
  path: '/echo',
  id: 'echo',
  body: z.string(),
  handle: async ({ body }) => json(200, body.length),
});

/** A route that counts its calls and waits for a gate. */
function gated() {
  const gate = Promise.withResolvers<void>();
  const calls = { count: 0 };
  const slow: Route = {
    ...hello,
    path: '/slow',
    id: 'slow',
    handle: async () => {
      calls.count += 1;
      await gate.promise;
      return json(200, calls.count);
    },
  };
  return { slow, gate, calls };
}

/** A route with 200 kB that counts its calls. */
function counted() {
  const calls = { count: 0 };
  const body = Buffer.alloc(200_000, 'x');
  const document: Route = {
    ...hello,
    path: '/document',
    id: 'document',
    handle: async () => {
      calls.count += 1;
      return { status: 200, headers: { 'Content-Type': 'text/plain' }, body };
    },
  };
  return { document, calls };
}

const statuses = (wire: string) => [...wire.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);

const servers = { http: testServer, https: httpsServer };
const connections = { http: open, https: handshake };

/** Lets what was sent arrive and be processed. */
async function settled({ world }: Pick<TestServer, 'world'>): Promise<void> {
  for (let turns = 0; turns < 50; turns += 1) await world.turn();
}

for (const scheme of ['http', 'https'] as const) {
  suite(`pipelined requests over ${scheme}`, () => {
    test('are processed one at a time and answered in order', async (t) => {
      const { slow, gate, calls } = gated();
      const server = await servers[scheme](t, { routes: [slow] });
      const socket = await connections[scheme](server.url);
      const all = readToEnd(socket);
      const count = 400;
      socket.write(requestText('GET', '/slow').repeat(count - 1));
      socket.write(requestText('GET', '/slow', ['Connection: close']));
      await settled(server);
      const before = calls.count;
      gate.resolve();
      const wire = await all;
      assert.equal(before, 1);
      assert.deepEqual(
        statuses(wire),
        Array.from({ length: count }, () => '200'),
      );
      const bodies = [...wire.matchAll(/\r\n\r\n(\d+)/g)].map(([, body]) => Number(body));
      assert.deepEqual(
        bodies,
        Array.from({ length: count }, (_, index) => index + 1),
      );
    });

    test('are not processed while the client does not read the responses before them', async (t) => {
      const { document, calls } = counted();
      const limits = { stalledMs: 500 };
      const server = await servers[scheme](t, { routes: [document], connectionLimits: limits });
      const socket = await connections[scheme](server.url);
      socket.on('error', () => {
        // It is cut.
      });
      socket.pause().write(requestText('GET', '/document').repeat(1000));
      while (!server.log.lines.some((line) => line.includes('stopped reading the response')))
        await server.world.turn();
      // What the kernels on both sides keep is some megabytes.
      assert(calls.count >= 1 && calls.count <= 120, `${calls.count} answers of 200 kB were made`);
      socket.destroy();
    });

    test('are read completely if they have long bodies', async (t) => {
      const server = await servers[scheme](t, { routes: [hello, echo] });
      const socket = await connections[scheme](server.url);
      const all = readToEnd(socket);
      const body = JSON.stringify(requestText('GET', '/hello').repeat(500));
      const padded = `${'\r\n'.repeat(10_000)}${body}`;
      const post = requestText('POST', '/echo', [
        'Content-Type: application/json',
        `Content-Length: ${padded.length}`,
      ]);
      socket.write(post + padded + post + padded);
      socket.write(requestText('GET', '/hello', ['Connection: close']));
      const wire = await all;
      assert.deepEqual(statuses(wire), ['200', '200', '200']);
      assert.match(wire, /"hello"$/);
    });
  });
}

test('pipelined requests all get a response after the client has closed its side', async (t) => {
  const { slow, gate } = gated();
  const server = await testServer(t, { routes: [hello, slow] });
  const socket = await open(server.url);
  const all = readToEnd(socket);
  socket.end(
    requestText('GET', '/hello').repeat(20) + requestText('GET', '/slow') + requestText('GET', '/hello'),
  );
  await settled(server);
  gate.resolve();
  assert.deepEqual(
    statuses(await all),
    Array.from({ length: 22 }, () => '200'),
  );
});

test('an endless stream is aborted and logged so when its client closes the connection', async (t) => {
  const gone = Promise.withResolvers<void>();
  const endless: Route = {
    ...hello,
    handle: async () => ({
      status: 200,
      headers: { 'Content-Type': 'text/event-stream' },
      stream: async function* ({ gone: signal }) {
        yield 'retry: 3000\n\n';
        await once(signal, 'abort');
        gone.resolve();
      },
    }),
  };
  const server = await testServer(t, { routes: [endless] });
  const socket = await open(server.url);
  socket.write(requestText('GET', '/hello'));
  await once(socket, 'data');
  assert.doesNotMatch(server.log.lines.join(), /"message":"request"/);
  socket.end();
  await gone.promise;
  while (!server.log.lines.some((line) => line.includes('"message":"request"'))) await server.world.turn();
  assert.match(server.log.lines.join(), /"aborted":true/);
});
