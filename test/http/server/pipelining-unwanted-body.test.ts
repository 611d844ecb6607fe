/** Bodies that no operation takes: the response arrives, and the server stops reading soon after it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { z } from 'zod';
import { json } from '../../../src/http/request/reply.ts';
import { type Route, route } from '../../../src/http/request/route.ts';
import { handshake } from '../../harness/http/https-client.ts';
import { httpsServer } from '../../harness/http/https-fixtures.ts';
import { converse, open, parseReply, readToEnd, requestText } from '../../harness/http/raw.ts';
import { testServer } from '../../harness/http/test-server.ts';

const whole = route({
  method: 'GET',
  path: '/whole',
  id: 'whole',
  summary: 'Responds with a word',
  access: { kind: 'public' },
  replies: { 200: { description: 'a word', schema: z.string() } },
  problems: [],
  handle: async () => json(200, 'word'),
});

const streamed: Route = {
  ...whole,
  path: '/streamed',
  id: 'streamed',
  handle: async () => ({
    status: 200,
    headers: {},
    stream: async function* () {
      yield '"word"';
    },
  }),
};

/** A route without a body whose response waits for a gate. */
function gated() {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const slow: Route = {
    ...whole,
    path: '/slow',
    id: 'slow',
    handle: async () => {
      begun.resolve();
      await gate.promise;
      return json(200, 'word');
    },
  };
  return { slow, gate, begun };
}

const chunked = ['Transfer-Encoding: chunked'];
const statuses = (wire: string) => [...wire.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);

for (const [scheme, serve, connect] of [
  ['HTTP', testServer, open],
  ['HTTPS', httpsServer, handshake],
] as const) {
  test(`a client that sends one-byte chunks over ${scheme} without end gets its response, and the connection ends`, async (t) => {
    const server = await serve(t, { routes: [whole] });
    const socket = await connect(server.url);
    assert(socket instanceof Socket);
    const answer = readToEnd(socket);
    let isOver = false;
    socket.once('end', () => {
      isOver = true;
    });
    const chunks = '1\r\n \r\n'.repeat(5000);
    socket.write(requestText('GET', '/whole', chunked));
    // What the kernels on both sides keep is some megabytes.
    while (!isOver && socket.bytesWritten < 12_000_000)
      await new Promise((written) => socket.write(chunks, written));
    assert(isOver, `the server read ${socket.bytesWritten} bytes`);
    socket.destroy();
    assert.deepEqual(statuses(await answer), ['200']);
  });
}

test('a long body is not read while its request is processed', async (t) => {
  const { slow, gate, begun } = gated();
  const server = await testServer(t, { routes: [slow] });
  const socket = await open(server.url);
  const answer = readToEnd(socket);
  socket.write(requestText('GET', '/slow', chunked));
  await begun.promise;
  socket.write('1\r\n \r\n'.repeat(2_000_000));
  for (let turns = 0; turns < 200; turns += 1) await server.world.turn();
  assert(socket.writableLength > 0, 'the server read all');
  gate.resolve();
  assert.deepEqual(statuses(await answer), ['200']);
});

suite('the connection of a request with an unwanted body', () => {
  test('carries the next request if the body is short', async (t) => {
    const server = await testServer(t, { routes: [whole] });
    for (const [lines, body, isLate] of [
      // The rest arrives after the response.
      [['Content-Length: 15000'], ' '.repeat(15_000), true],
      [chunked, `${'1\r\n \r\n'.repeat(2000)}0\r\n\r\n`, false],
    ] as const) {
      const socket = await open(server.url);
      const answers = readToEnd(socket);
      socket.write(requestText('GET', '/whole', lines));
      if (isLate) await once(socket, 'data');
      socket.write(body);
      socket.write(requestText('GET', '/whole', ['Connection: close']));
      assert.deepEqual(statuses(await answers), ['200', '200'], lines.join());
    }
  });

  test('gets Connection: close if the end of a chunked body has not arrived', async (t) => {
    const server = await testServer(t, { routes: [whole] });
    const wire = await converse(server.url, requestText('GET', '/whole', chunked));
    assert.deepEqual([statuses(wire), parseReply(wire).headers.get('Connection')], [['200'], 'close']);
  });

  test('gets Connection: close if the body is long', async (t) => {
    const server = await testServer(t, { routes: [whole] });
    for (const [method, path, status] of [
      ['GET', '/whole', 200],
      ['PUT', '/whole', 405],
      ['POST', '/none', 404],
    ] as const) {
      const wire = await converse(server.url, requestText(method, path, ['Content-Length: 20000']));
      const reply = parseReply(wire);
      assert.deepEqual([reply.status, reply.headers.get('Connection')], [status, 'close']);
    }
  });
});

suite('a client that is still sending receives the response', () => {
  for (const [path, method, body] of [
    ['/whole', 'GET', '"word"'],
    ['/whole', 'HEAD', ''],
    ['/streamed', 'GET', '"word"'],
    ['/streamed', 'HEAD', ''],
  ] as const) {
    for (const framing of ['Content-Length', 'Transfer-Encoding'] as const) {
      test(`to ${method} ${path} with ${framing}`, async (t) => {
        const server = await testServer(t, { routes: [whole, streamed] });
        const sent = Buffer.alloc(10_000_000);
        const headers = framing === 'Content-Length' ? { [framing]: sent.length } : { [framing]: 'chunked' };
        for (let time = 0; time < 10; time += 1) {
          const asked = request(new URL(path, server.url), { method, headers });
          asked.on('error', () => {
            // The connection ends in the middle of the body.
          });
          asked.end(sent);
          const [response] = (await once(asked, 'response')) as [IncomingMessage];
          assert.equal(await text(response), body);
        }
      });
    }
  }

  test('to an invalid request', async (t) => {
    const server = await testServer(t, { routes: [whole] });
    const socket = await open(server.url);
    const answer = readToEnd(socket);
    socket.write(`BAD\r\n\r\n${' '.repeat(10_000_000)}`);
    assert.deepEqual(statuses(await answer), ['400']);
  });
});
