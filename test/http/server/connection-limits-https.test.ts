/** The limits of connections hold through TLS too, where a connection and what is read from it are two things. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { z } from 'zod';
import { json } from '../../../src/http/request/reply.ts';
import { type Route, route } from '../../../src/http/request/route.ts';
import { handshake, visit } from '../../harness/http/https-client.ts';
import { httpsServer } from '../../harness/http/https-fixtures.ts';
import { open, parseReply, readToEnd, requestText } from '../../harness/http/raw.ts';

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

const endless: Route = {
  ...hello,
  path: '/endless',
  id: 'endless',
  handle: async () => ({
    status: 200,
    headers: { 'Content-Type': 'text/plain' },
    stream: async function* () {
      for (;;) yield 'x'.repeat(65_536);
    },
  }),
};

async function tls(url: string): Promise<TLSSocket> {
  const socket = await handshake(url);
  assert(socket instanceof TLSSocket);
  return socket;
}

suite('over HTTPS', () => {
  test('slow headers get 408, and a connection that is silent after its handshake is closed', async (t) => {
    const server = await httpsServer(t, { routes: [hello], connectionLimits: { headersMs: 300 } });
    const [slow, silent] = [await tls(server.url), await tls(server.url)];
    slow.write('GET /hello HTTP/1.1\r\n');
    const [text, nothing] = await Promise.all([readToEnd(slow), readToEnd(silent)]);
    const { status, body } = parseReply(text);
    assert.deepEqual([status, JSON.parse(body).code, nothing], [408, 'request_timeout', '']);
  });

  test('connections that wait for a handshake or request are closed for new ones, the oldest first', async (t) => {
    const server = await httpsServer(t, { routes: [hello], connectionLimits: { most: 3 } });
    const raw = await open(server.url);
    const used = await tls(server.url);
    used.write(requestText('GET', '/hello'));
    await once(used, 'data');
    const halfSent = await tls(server.url);
    halfSent.write('GET /hello HTTP/1.1\r\n');
    const closed: string[] = [];
    const ends = Object.entries({ raw, used, halfSent }).map(async ([name, socket]) => {
      await readToEnd(socket);
      closed.push(name);
    });
    const more = [];
    for (const end of ends) {
      const socket = await tls(server.url);
      socket.write(requestText('GET', '/hello'));
      assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 200 /);
      await end;
      more.push(socket);
    }
    assert.deepEqual(closed, ['raw', 'used', 'halfSent']);
    for (const socket of more) socket.destroy();
  });

  test('a request in progress keeps its connection, and a new one beyond the limit is closed', async (t) => {
    const gate = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const slow: Route = {
      ...hello,
      path: '/slow',
      id: 'slow',
      handle: async () => {
        arrived.resolve();
        await gate.promise;
        return json(200, 'done');
      },
    };
    const server = await httpsServer(t, { routes: [hello, slow], connectionLimits: { most: 1 } });
    const busy = visit(`${server.url}/slow`);
    await arrived.promise;
    assert((await handshake(server.url)) instanceof Error);
    gate.resolve();
    assert.equal((await busy).status, 200);
  });

  test('a response that the client does not read is cut off', async (t) => {
    const limits = { stalledMs: 500, slowest: 10_000_000 };
    const server = await httpsServer(t, { routes: [endless], connectionLimits: limits });
    const socket = await tls(server.url);
    socket.pause();
    socket.write(requestText('GET', '/endless'));
    while (!server.log.lines.some((line) => line.includes('stopped reading the response')))
      await server.world.turn();
    await readToEnd(socket.resume());
  });
});
