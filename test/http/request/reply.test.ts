/** Replies as bytes on the wire: lengths, bodies that must not be sent, and the headers that problems carry. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite, test } from 'node:test';
import { Problem } from '../../../src/base/problem.ts';
import {
  json,
  problemReply,
  type StreamedReply,
  type WholeReply,
  writeReply,
  writeStream,
} from '../../../src/http/request/reply.ts';
import { rawRequest } from '../../harness/http/raw.ts';

suite('a reply', () => {
  /** What a client sees of the reply. */
  async function sent(t: { after: (work: () => void) => void }, reply: WholeReply, method = 'GET') {
    const server = createServer((request, response) => writeReply(request, response, 'the-id', reply));
    t.after(() => server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const { status, headers, body } = await rawRequest(`http://127.0.0.1:${port}`, method, '/');
    assert.equal(headers.get('X-Request-Id'), 'the-id');
    assert.equal(headers.get('Transfer-Encoding'), null);
    return { status, length: headers.get('Content-Length'), type: headers.get('Content-Type'), body };
  }

  test('declares the length of its body in bytes, not in characters', async (t) => {
    const { length, body } = await sent(t, json(200, 'ключ'));
    assert.deepEqual([length, Buffer.from(body, 'latin1').toString()], ['10', '"ключ"']);
  });

  test('to HEAD declares the length of the body that GET would have, even if the body was not created', async (t) => {
    const made = await sent(t, json(200, [1, 2]), 'HEAD');
    assert.deepEqual(made, { status: 200, length: '5', type: 'application/json', body: '' });
    const notMade = await sent(t, { status: 200, headers: {}, body: '', size: 241 }, 'HEAD');
    assert.deepEqual([notMade.length, notMade.body], ['241', '']);
  });

  test('without content has neither body nor length', async (t) => {
    for (const status of [204, 304]) {
      const reply = await sent(t, { status, headers: {}, body: 'never sent' });
      assert.deepEqual(reply, { status, length: null, type: null, body: '' });
    }
  });

  test('has Cache-Control: no-store if it is JSON', () => {
    assert.equal(json(200, {}).headers['Cache-Control'], 'no-store');
    assert.equal(problemReply(new Problem('not_found')).headers['Cache-Control'], 'no-store');
  });
});

suite('a problem', () => {
  test('has its status, its code, its detail with the hint, and its errors with their paths', () => {
    const errors = [{ path: 'version', message: 'no number' }];
    const { status, headers, body } = problemReply(
      new Problem('invalid_request', { detail: 'It is wrong.', hint: 'Fix it.', errors }),
      { Allow: 'GET' },
    );
    const expected = { status: 400, code: 'invalid_request', detail: 'It is wrong. Fix it.', errors };
    assert.deepEqual([status, JSON.parse(String(body))], [400, expected]);
    assert.deepEqual([headers['Content-Type'], headers.Allow], ['application/problem+json', 'GET']);
  });

  test('has WWW-Authenticate if unauthenticated, and Retry-After if unavailable', () => {
    assert.equal(problemReply(new Problem('unauthenticated')).headers['WWW-Authenticate'], 'Bearer');
    assert.match(problemReply(new Problem('unavailable')).headers['Retry-After'] ?? '', /^\d+$/);
    const plain = problemReply(new Problem('forbidden')).headers;
    assert.deepEqual(Object.keys(plain).toSorted(), ['Cache-Control', 'Content-Type']);
  });

  test('cached by its code is not reused for one with its own detail, Retry-After or headers', () => {
    const detail = ({ body }: WholeReply) => JSON.parse(String(body)).detail as string;
    const usual = problemReply(new Problem('rate_limited'));
    const paused = problemReply(new Problem('rate_limited', { detail: 'Too often.', retryAfter: 7 }));
    assert.deepEqual([detail(paused), paused.headers['Retry-After']], ['Too often.', '7']);
    const listed = problemReply(new Problem('rate_limited'), { Allow: 'GET' });
    assert.deepEqual([detail(listed), listed.headers.Allow], [detail(usual), 'GET']);
    assert.deepEqual(problemReply(new Problem('rate_limited')), usual);
    assert.deepEqual([usual.headers['Retry-After'], usual.headers.Allow], [undefined, undefined]);
    assert.notEqual(detail(problemReply(new Problem('forbidden'))), detail(usual));
  });
});

suite('a streamed reply', () => {
  /** A server that streams, and how each of its streams ended. */
  async function streaming(t: { after: (work: () => void) => void }, stream: StreamedReply['stream']) {
    const ended: Promise<unknown>[] = [];
    const never = new AbortController().signal;
    const reply = { status: 200, headers: { 'Content-Type': 'text/plain' }, stream };
    const server = createServer((request, response) => {
      ended.push(writeStream(request, response, 'the-id', reply, never).catch((error: unknown) => error));
    });
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, ended };
  }

  test('arrives complete, with its request id', async (t) => {
    const { url } = await streaming(t, async function* () {
      yield 'one ';
      yield 'two';
    });
    const response = await fetch(url);
    assert.deepEqual([await response.text(), response.headers.get('X-Request-Id')], ['one two', 'the-id']);
  });

  test('is generated no faster than it is read, and stops when the client disconnects', async (t) => {
    let made = 0;
    let isOver = false;
    const { url, ended } = await streaming(t, async function* () {
      try {
        for (; made < 10_000; made += 1) yield 'x'.repeat(100_000);
      } finally {
        isOver = true;
      }
    });
    const gone = new AbortController();
    const response = await fetch(url, { signal: gone.signal });
    const reader = response.body?.getReader();
    await reader?.read();
    assert(made < 1000, 'it waits for the reader');
    gone.abort();
    await ended[0];
    assert.equal(isOver, true);
    assert(made < 1000);
  });

  test('is cut off if its generator fails, so that the client gets an error', async (t) => {
    const { url, ended } = await streaming(t, async function* () {
      yield 'a part';
      throw new Error('no more');
    });
    const response = await fetch(url);
    await assert.rejects(response.text());
    assert.match(String(await ended[0]), /no more/);
  });
});
