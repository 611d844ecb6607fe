/**
 * What one connection may cost, exceeded on real sockets: those that go too far are told or cut, all others are served.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { suite, test } from 'node:test';
import { z } from 'zod';
import { json } from '../../../src/http/request/reply.ts';
import { type Route, route } from '../../../src/http/request/route.ts';
import { converse, open, parseReply, type RawReply, readToEnd, requestText } from '../../harness/http/raw.ts';
import { testServer } from '../../harness/http/test-server.ts';

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
  method: 'POST',
  path: '/echo',
  id: 'echo',
  summary: 'Waits for its body',
  access: { kind: 'public' },
  body: z.unknown(),
  replies: { 200: { description: 'the body', schema: z.unknown() } },
  problems: [],
  handle: async ({ body }) => json(200, body),
});

const guarded = route({
  ...echo,
  path: '/guarded',
  id: 'guarded',
  access: { kind: 'scope', scope: 'certificates:read' },
});

/** As many pieces of 64 KiB as the query says, as fast as they are read. */
const pieces: Route = route({
  method: 'GET',
  path: '/pieces',
  id: 'pieces',
  summary: 'Streams',
  access: { kind: 'public' },
  replies: { 200: { description: 'pieces', contentType: 'text/plain' } },
  problems: [],
  handle: async () => ({
    status: 200,
    headers: { 'Content-Type': 'text/plain' },
    stream: async function* () {
      for (let count = 0; count < 320; count += 1) yield 'x'.repeat(65_536);
    },
  }),
});

const postText = (path: string, length: number, lines: readonly string[] = []) =>
  requestText('POST', path, ['Content-Type: application/json', `Content-Length: ${length}`, ...lines]);

function assertProblem({ status, headers, body }: RawReply, code: string): void {
  const problem = JSON.parse(body);
  assert.deepEqual([problem.status, problem.code], [status, code]);
  assert.equal(headers.get('Content-Type'), 'application/problem+json');
  assert.equal(headers.get('Content-Length'), String(body.length));
  assert.equal(headers.get('Connection'), 'close');
  assert.match(headers.get('X-Request-Id') ?? '', /^[\w-]+$/);
}

const requestLines = (server: { log: { lines: readonly string[] } }) =>
  server.log.lines.filter((line) => line.includes('"message":"request"'));

suite('a request that is too slow', () => {
  test('in its headers gets 408, and the connection is closed', async (t) => {
    const server = await testServer(t, { routes: [hello], connectionLimits: { headersMs: 300 } });
    for (const text of ['G', 'GET /hello HTTP/1.1\r\n', 'GET /hello HTTP/1.1\r\nHost: vault.test\r\nX: ']) {
      const reply = parseReply(await converse(server.url, text));
      assert.equal(reply.status, 408, text);
      assertProblem(reply, 'request_timeout');
    }
    assert.equal(requestLines(server).length, 3);
    assert.equal((await server.get('/hello')).status, 200);
  });

  test('in its headers gets 408 even if they are sent byte by byte', async (t) => {
    const server = await testServer(t, { routes: [hello], connectionLimits: { headersMs: 400 } });
    const socket = await open(server.url);
    const answer = readToEnd(socket);
    const dripping = setInterval(() => socket.writable && socket.write('x'), 20);
    socket.write('GET /hello HTTP/1.1\r\nX: ');
    const text = await answer;
    clearInterval(dripping);
    assert.equal(parseReply(text).status, 408);
  });

  test('in its body gets 408 even if it is sent byte by byte, and the next request is served', async (t) => {
    const server = await testServer(t, { routes: [echo], connectionLimits: { requestMs: 300 } });
    const socket = await open(server.url);
    const answer = readToEnd(socket);
    const dripping = setInterval(() => socket.writable && socket.write('x'), 20);
    socket.write(`${postText('/echo', 60_000)}{"a":"`);
    const reply = parseReply(await answer);
    clearInterval(dripping);
    assert.equal(reply.status, 408);
    assertProblem(reply, 'request_timeout');
    assert.equal(
      (
        await server.get('/echo', undefined, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: '1',
        })
      ).status,
      200,
    );
  });

  test('in a body that is not read gets only its 401, and the connection is closed', async (t) => {
    const server = await testServer(t, { routes: [guarded], connectionLimits: { requestMs: 300 } });
    const text = await converse(server.url, `${postText('/guarded', 100)}{"a":`);
    assert.deepEqual(
      [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
      ['401'],
    );
  });

  test('to begin is cut off without a response or a log line', async (t) => {
    const server = await testServer(t, { routes: [hello], connectionLimits: { headersMs: 300 } });
    assert.equal(await converse(server.url, ''), '');
    assert.deepEqual(server.log.lines, []);
  });

  test('to follow another gets its idle connection closed after the response', async (t) => {
    const server = await testServer(t, { routes: [hello], connectionLimits: { idleMs: 300 } });
    const reply = parseReply(await converse(server.url, requestText('GET', '/hello')));
    assert.deepEqual([reply.status, reply.body], [200, '"hello"']);
  });
});

suite('too many connections', () => {
  test('close those that have waited longest for their clients', async (t) => {
    const server = await testServer(t, { routes: [hello, echo], connectionLimits: { most: 4 } });
    const silent = await open(server.url);
    const used = await open(server.url);
    used.write(requestText('GET', '/hello'));
    await once(used, 'data');
    const halfSent = await open(server.url);
    halfSent.write('GET /hello HTTP/1.1\r\n');
    const bodiless = await open(server.url);
    bodiless.write(`${postText('/echo', 3)}1`);
    const closed: string[] = [];
    const ends = Object.entries({ silent, used, halfSent, bodiless }).map(async ([name, socket]) => {
      await readToEnd(socket);
      closed.push(name);
    });
    const more: Socket[] = [];
    for (const end of ends) {
      const socket = await open(server.url);
      socket.write(requestText('GET', '/hello'));
      assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 200 /);
      await end;
      more.push(socket);
    }
    assert.deepEqual(closed, ['silent', 'used', 'halfSent', 'bodiless']);
    assert.equal(server.log.lines.filter((line) => line.includes('--max-connections')).length, 1);
    for (const socket of more) socket.destroy();
  });

  test('with requests in progress reject new ones with 503 and Retry-After', async (t) => {
    const gate = Promise.withResolvers<void>();
    const arrived: (() => void)[] = [];
    const slow: Route = {
      ...hello,
      path: '/slow',
      id: 'slow',
      handle: async () => {
        for (const tell of arrived.splice(0, 1)) tell();
        await gate.promise;
        return json(200, 'done');
      },
    };
    const server = await testServer(t, { routes: [hello, slow], connectionLimits: { most: 3 } });
    const busy: Promise<string>[] = [];
    for (let count = 0; count < 3; count += 1) {
      const { promise, resolve } = Promise.withResolvers<void>();
      arrived.push(resolve);
      busy.push(converse(server.url, requestText('GET', '/slow', ['Connection: close'])));
      await promise;
    }
    const refused = await Promise.all(
      Array.from({ length: 20 }, () => converse(server.url, requestText('GET', '/hello'))),
    );
    for (const text of refused) {
      const reply = parseReply(text);
      assert.equal(reply.status, 503);
      assertProblem(reply, 'unavailable');
      assert.equal(reply.headers.get('Retry-After'), '5');
      assert.match(reply.body, /Too many connections/);
    }
    gate.resolve();
    for (const text of await Promise.all(busy)) assert.equal(parseReply(text).status, 200);
    assert.equal((await server.get('/hello')).status, 200);
    assert.equal(server.log.lines.filter((line) => line.includes('"level":"warn"')).length, 1);
  });

  test('of silent clients do not block a client that sends a request', async (t) => {
    const server = await testServer(t, { routes: [hello], connectionLimits: { most: 20 } });
    const flood: Socket[] = [];
    for (let round = 0; round < 20; round += 1) {
      flood.push(...(await Promise.all(Array.from({ length: 10 }, () => open(server.url)))));
      const text = await converse(server.url, requestText('GET', '/hello', ['Connection: close']));
      assert.equal(parseReply(text).status, 200);
    }
    for (const socket of flood) socket.destroy();
  });
});

suite('a response', () => {
  test('not read by its client is cut off and logged with the client address', async (t) => {
    const limits = { stalledMs: 500 };
    const server = await testServer(t, { routes: [hello, pieces], connectionLimits: limits });
    const socket = await open(server.url);
    socket.pause();
    socket.write(requestText('GET', '/pieces'));
    await once(socket, 'readable');
    while (!server.log.lines.some((line) => line.includes('stopped reading the response')))
      await server.world.turn();
    assert.match(
      server.log.lines.find((line) => line.includes('stopped reading the response')) ?? '',
      /"ip":"127\.0\.0\.1"/,
    );
    const received = await readToEnd(socket.resume());
    assert(received.length < 320 * 65_536);
    assert.equal((await server.get('/hello')).status, 200);
  });

  test('read more slowly than the minimum pace is cut off', async (t) => {
    const limits = { stalledMs: 500, slowest: 100_000_000 };
    const server = await testServer(t, { routes: [pieces], connectionLimits: limits });
    const socket = await open(server.url);
    socket.write(requestText('GET', '/pieces', ['Connection: close']));
    let size = 0;
    socket.on('data', (chunk: Buffer) => {
      size += chunk.length;
      socket.pause();
      setTimeout(() => socket.resume(), 20);
    });
    await once(socket, 'close');
    assert(size < 320 * 65_536, String(size));
    assert(server.log.lines.some((line) => line.includes('stopped reading the response')));
  });

  test('read slowly but steadily arrives complete', async (t) => {
    const limits = { stalledMs: 500 };
    const server = await testServer(t, { routes: [pieces], connectionLimits: limits });
    const socket = await open(server.url);
    socket.write(requestText('GET', '/pieces', ['Connection: close']));
    let size = 0;
    // Together that takes several times as long as nothing may be taken.
    socket.on('data', (chunk: Buffer) => {
      size += chunk.length;
      socket.pause();
      setTimeout(() => socket.resume(), 4);
    });
    await once(socket, 'end');
    assert(size > 320 * 65_536, String(size));
  });

  test('delayed beyond the timeouts for clients is still sent', async (t) => {
    const limits = { headersMs: 300, requestMs: 300, idleMs: 300, stalledMs: 300 };
    const gate = Promise.withResolvers<void>();
    const slow: Route = {
      ...hello,
      path: '/slow',
      id: 'slow',
      handle: async () => {
        await gate.promise;
        return json(200, 'done');
      },
    };
    const server = await testServer(t, { routes: [slow], connectionLimits: limits });
    const answer = converse(server.url, requestText('GET', '/slow', ['Connection: close']));
    // When another, begun later, has been cut off for being slow, this one has waited for longer.
    for (let count = 0; count < 3; count += 1) await converse(server.url, 'G');
    gate.resolve();
    assert.equal(parseReply(await answer).status, 200);
  });
});
