/**
 * The log's line of a request: one for each, regardless of its result, with who, what, how it ended and how long it
 * took.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Route } from '../../../src/http/request/route.ts';
import { redirectReply } from '../../../src/http/server/https-redirect.ts';
import { makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { converse, open, requestText } from '../../harness/http/raw.ts';
import { testServer } from '../../harness/http/test-server.ts';

/** The id that an answer carries. */
const idIn = (reply: string) => /X-Request-Id: (\S+)/.exec(reply)?.[1];

type Line = {
  request_id: string;
  method?: string;
  route: string;
  status: number;
  actor: string;
  ip: string;
  ms?: number;
  aborted?: boolean;
  reason?: string;
};

const www = '/api/v1/certificates/www';
const pattern = (rest: string) => `/api/v1/certificates/{name}${rest}`;

function linesOf(server: { log: { lines: string[] } }): Line[] {
  return server.log.lines
    .map((line) => JSON.parse(line) as Line & { level: string; message: string })
    .filter(({ message, level }) => message === 'request' && level === 'info');
}

async function prepared(t: TestContext, options: Parameters<typeof testServer>[1] = {}) {
  const server = await testServer(t, options);
  for (const name of ['www', 'api']) await makeCertificate(server.vault, name);
  return {
    server,
    key: await makeKey(server.vault),
    lines: () => linesOf(server),
    /** The lines, once there are so many. */
    until: async (count: number) => {
      while (linesOf(server).length < count) await nextTurn();
      return linesOf(server);
    },
  };
}

test('every response has one log line with its request id, method, route, status, actor and address', async (t) => {
  const { server, key, lines } = await prepared(t);
  const other = await makeKey(server.vault, {
    name: 'other',
    scopes: ['certificates:read'],
    certificates: ['api'],
  });
  const cases = [
    ['/api/v1/health', undefined, 200, '/api/v1/health', 'anonymous'],
    [`${www}/private.key`, key.raw, 200, pattern('/private.key'), key.actor],
    [`${www}/private.key`, undefined, 401, pattern('/private.key'), 'anonymous'],
    [`${www}/private.key`, 'vk_unknown', 401, pattern('/private.key'), 'anonymous'],
    [`${www}/private.key`, other.raw, 403, pattern('/private.key'), other.actor],
    ['/api/v1/audit-events', key.raw, 403, '/api/v1/audit-events', key.actor],
    [`${www}?secret=x`, key.raw, 400, pattern(''), key.actor],
    ['/api/v1/certificates/none/chain.crt', key.raw, 404, pattern('/chain.crt'), key.actor],
    ['/nothing/secret', key.raw, 404, 'none', 'anonymous'],
    [`${www}/renew`, key.raw, 405, pattern('/renew'), 'anonymous'],
  ] as const;
  for (const [index, [path, token, status, route, actor]] of cases.entries()) {
    const reply = await server.get(path, token);
    const all = lines();
    assert.equal(all.length, index + 1, `${path}: one line`);
    const { ms, ip, ...line } = all.at(-1) as Line;
    const id = reply.headers.get('X-Request-Id');
    assert.deepEqual(
      { ...line, level: 0, message: 0 },
      {
        ...{ level: 0, request_id: id, method: 'GET', route, status, actor, message: 0 },
      },
    );
    assert.equal(reply.status, status);
    assert.deepEqual([ms, ip], [0, '127.0.0.1'], 'the clock of the test stands');
  }
  assert.doesNotMatch(server.log.lines.join('\n'), /secret=|nothing\/secret|vk_/);
});

test('the logged time includes the time that the vault takes for the response', async (t) => {
  const { server, lines } = await prepared(t);
  const { db } = server.vault;
  const { generation } = db;
  t.mock.method(db, 'generation', () => {
    server.world.advance(250);
    return Reflect.apply(generation, db, []);
  });
  await server.get(www);
  assert.equal(lines()[0]?.ms, 250);
});

test('an invalid request is logged under the id in its response', async (t) => {
  const { server, lines, until } = await prepared(t);
  for (const [text, status] of [
    ['no request at all\r\n\r\n', 400],
    [requestText('CONNECT', 'elsewhere:443'), 400],
    ['GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n', 400],
    [`GET /%zz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`, 400],
    [requestText('GET', '/', [`X-Long: ${'x'.repeat(20_000)}`]), 431],
  ] as const) {
    const before = lines().length;
    const reply = await converse(server.url, text);
    const [line, ...more] = (await until(before + 1)).slice(before);
    assert.deepEqual(more, []);
    assert.equal(line?.request_id, idIn(reply), text.slice(0, 40));
    assert.deepEqual(
      [line?.status, line?.route, line?.actor, line?.ip],
      [status, 'none', 'anonymous', '127.0.0.1'],
    );
  }
});

/** A route that waits until its client has gone; `begun` resolves when it does so. */
function slowRoute(): { readonly slow: Route; readonly begun: Promise<void> } {
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const slow: Route = {
    ...{ method: 'GET', path: '/slow', id: 'slow', summary: 'Waits', access: { kind: 'public' } },
    replies: { 200: { description: 'never', contentType: 'none' } },
    problems: [],
    handle: async ({ gone }) => {
      const signal = gone();
      resolve();
      if (!signal.aborted) await once(signal, 'abort');
      return { status: 200, headers: {}, body: '' };
    },
  };
  return { slow, begun };
}

const endless: Route = {
  ...slowRoute().slow,
  path: '/endless',
  id: 'endless',
  replies: { 200: { description: 'pieces', contentType: 'text/event-stream' } },
  handle: async () => ({
    status: 200,
    headers: { 'Content-Type': 'text/event-stream' },
    stream: async function* ({ gone, stopping }) {
      yield 'first\n';
      const end = AbortSignal.any([gone, stopping]);
      if (!end.aborted) await once(end, 'abort');
    },
  }),
};

test('a request of a disconnected client is logged as aborted, and a connection too many with its reason', async (t) => {
  const { slow, begun } = slowRoute();
  const { server, until } = await prepared(t, { routes: [slow], connectionLimits: { most: 1 } });
  const socket = await open(server.url);
  socket.write(requestText('GET', '/slow'));
  await begun;
  const reply = await converse(server.url, '');
  const [tooMany] = await until(1);
  assert.deepEqual([tooMany?.status, tooMany?.reason], [503, 'too many connections']);
  assert.equal(tooMany?.request_id, idIn(reply));
  socket.resetAndDestroy();
  const [, line] = await until(2);
  assert.deepEqual([line?.route, line?.status, line?.aborted], ['/slow', 200, true]);
});

test('a stream is logged once, at its end, with its whole duration', async (t) => {
  const { server, lines, until } = await prepared(t, { routes: [endless] });
  const listening = await fetch(`${server.url}/endless`);
  const reader = listening.body?.getReader();
  assert(reader);
  await reader.read();
  assert.deepEqual(lines(), []);
  server.world.advance(90_000);
  await reader.cancel();
  const [left, ...more] = await until(1);
  assert.deepEqual(
    [left?.route, left?.status, left?.ms, left?.aborted, more],
    ['/endless', 200, 90_000, true, []],
  );

  const kept = await fetch(`${server.url}/endless`);
  const ended = kept.text();
  let isStopped = false;
  const stopping = server.stop(1000).then(() => {
    isStopped = true;
  });
  assert.equal(await ended, 'first\n');
  for (; !isStopped; await nextTurn()) server.world.advance(20);
  await stopping;
  const [, whole] = await until(2);
  assert.deepEqual([whole?.route, whole?.aborted], ['/endless', undefined]);
});

test('a redirect is logged with its status and route, without its path and query', async (t) => {
  const target = { publicUrl: 'https://vault.test', httpsPort: 443 };
  const { server, lines } = await prepared(t, {
    routes: [],
    pages: (request) => redirectReply(target, request as IncomingMessage),
  });
  const { status } = await server.get('/some/where?token=x', undefined, { redirect: 'manual' });
  assert.equal(status, 308);
  const [line, ...more] = lines();
  assert.deepEqual([line?.status, line?.route, line?.actor, more], [308, 'console', 'anonymous', []]);
  assert.doesNotMatch(server.log.lines.join('\n'), /some\/where|token=/);
});
