/** Requests of many small parts: neither time nor memory grows faster than the bytes that were received. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { suite, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { z } from 'zod';
import { json } from '../../../src/http/request/reply.ts';
import { readRawBody } from '../../../src/http/request/request-body.ts';
import { route } from '../../../src/http/request/route.ts';
import { assertBrief, watchTurns } from '../../harness/event-loop-turns.ts';
import { makeKey } from '../../harness/http/fixtures.ts';
import { converse, open, parseReply, readToEnd, requestText } from '../../harness/http/raw.ts';
import { testServer } from '../../harness/http/test-server.ts';

/** As many different names as fit into the 16 kB of a request's head. */
const names = Array.from({ length: 4000 }, (_, index) => index.toString(36));

suite('a query of 4,000 different names', () => {
  for (const [what, method, path, detail] of [
    ['on a route without query parameters', 'POST', '/api/v1/session', /no query parameters/],
    ['on a route with query parameters', 'GET', '/api/v1/certificates', /more than 100 parameters/],
  ] as const) {
    test(`${what} is rejected with a short response, in a short turn of the event loop`, async (t) => {
      const server = await testServer(t);
      const { raw } = await makeKey(server.vault);
      const lines = [`Authorization: Bearer ${raw}`, 'Connection: close'];
      const request = requestText(method, `${path}?${names.join('&')}`, lines);
      await assertBrief('a turn', 50, async () => {
        const stop = watchTurns();
        const { status, body } = parseReply(await converse(server.url, request));
        const longest = stop();
        assert.equal(status, 400);
        assert.match(JSON.parse(body).detail, detail);
        assert(body.length < 1000, body);
        return longest;
      });
    });
  }
});

test('a body in one-byte chunks takes memory for its bytes, not for an object for each chunk', async (t) => {
  const server = await testServer(t);
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const memory = () => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const [connections, bytes] = [40, 16_000];
  const head = requestText('POST', '/api/v1/session', [
    'Content-Type: application/json',
    'Transfer-Encoding: chunked',
  ]);
  const half = '1\r\n \r\n'.repeat(bytes / 2);
  const sockets: Socket[] = [];
  const before = memory();
  for (let count = 0; count < connections; count += 1) {
    const socket = await open(server.url);
    sockets.push(socket);
    socket.write(head);
    await Promise.all([half, half].map((text) => new Promise((written) => socket.write(text, written))));
  }
  // A request that was sent last is answered when all before it were read.
  assert.equal((await server.get('/api/v1/health')).status, 200);
  const grown = memory() - before;
  assert(grown < 8 * connections * bytes + 4_000_000, `${grown} bytes`);
  const [first] = sockets;
  assert(first);
  const answer = readToEnd(first);
  first.write('1\r\n1\r\n0\r\n\r\n');
  first.end();
  assert.equal(parseReply(await answer).status, 400);
  for (const socket of sockets) socket.destroy();
});

test('a body in chunks of one byte is parsed over many turns of the event loop', async (t) => {
  const perTurn: number[] = [0];
  let isOver = false;
  const count = () => {
    perTurn.push(0);
    if (!isOver) setImmediate(count);
  };
  const read = async (request: IncomingMessage) => {
    setImmediate(count);
    request.on('data', () => {
      perTurn[perTurn.length - 1] = (perTurn.at(-1) ?? 0) + 1;
    });
    const { length } = await readRawBody(request, 100_000);
    isOver = true;
    return length;
  };
  const counted = route({
    method: 'POST',
    path: '/counted',
    id: 'counted',
    summary: 'Counts the chunks of its body',
    access: { kind: 'public' },
    body: z.int(),
    protocol: {
      bodyType: 'text/plain',
      readBody: read,
      problemReply: () => undefined,
      complete: (reply) => reply,
      failures: {},
      problemSchema: z.string(),
    },
    replies: { 200: { description: 'how many', schema: z.int() } },
    problems: [],
    handle: async ({ body }) => json(200, body),
  });
  const server = await testServer(t, { routes: [counted] });
  const lines = ['Transfer-Encoding: chunked', 'Connection: close'];
  const text = `${requestText('POST', '/counted', lines)}${'1\r\n \r\n'.repeat(20_000)}0\r\n\r\n`;
  assert.equal(parseReply(await converse(server.url, text)).body, '20000');
  const most = Math.max(...perTurn);
  assert(most < 3000, `${most} chunks in a turn`);
});
