/** The server on its socket: what is no request is answered too, and a stop is graceful but never endless. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { suite, test } from 'node:test';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { serverContext } from '../../../src/http/server/listener-context.ts';
import { startServer } from '../../../src/http/server/server.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { converse, open, parseReply, readToEnd, requestText } from '../../harness/http/raw.ts';
import { type TestServer, testServer } from '../../harness/http/test-server.ts';

const health = '/api/v1/health';

suite('an invalid request', () => {
  test('gets a problem with a request id, and its credentials are not logged', async (t) => {
    const server = await testServer(t);
    const secret = `vk_abcdefghijkl.${'s'.repeat(43)}`;
    const ok = requestText('GET', health, [`Authorization: Bearer ${secret}`, 'Connection: close']);
    const cases: Record<string, [string, number]> = {
      garbage: [`${secret}\r\n\r\n`, 400],
      'another protocol': ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
      'an unknown version': [ok.replace('HTTP/1.1', 'HTTP/9.9'), 400],
      'a header without a colon': [ok.replace('Authorization:', 'Authorization'), 400],
      'a bare line feed in a header': [ok.replace('Connection', 'X: a\nY: b\r\nConnection'), 400],
      'a control character in a header': [ok.replace(secret, `${secret}\x01`), 400],
      'two lengths': [ok.replace('Connection', 'Content-Length: 1\r\nContent-Length: 2\r\nConnection'), 400],
      'a length and chunks': [
        ok.replace('Connection', 'Content-Length: 1\r\nTransfer-Encoding: chunked\r\nConnection'),
        400,
      ],
      'no host': [ok.replace('Host: vault.test\r\n', ''), 400],
      'two hosts': [ok.replace('Host', 'Host: other.test\r\nhost'), 400],
      'a path of raw bytes': [ok.replace(health, `${health}\xe9`), 400],
      'a very long path': [ok.replace(health, `/${'a'.repeat(20_000)}`), 431],
      'very long headers': [ok.replace(secret, secret.repeat(500)), 431],
      'very many headers': [ok.replace('Connection', `${'x: y\r\n'.repeat(200)}Connection`), 431],
    };
    const ids = new Set<string | null>();
    for (const [what, [bytes, expected]] of Object.entries(cases)) {
      const { status, headers, body } = parseReply(await converse(server.url, bytes));
      assert.equal(status, expected, what);
      assert.equal(headers.get('Content-Type'), 'application/problem+json', what);
      assert.equal(JSON.parse(body).status, expected, what);
      assert.equal(headers.get('Content-Length'), String(body.length), what);
      assert.match(headers.get('X-Request-Id') ?? '', /^[\w-]+$/, what);
      ids.add(headers.get('X-Request-Id'));
    }
    assert.equal(ids.size, Object.keys(cases).length);
    const log = server.log.lines.join('\n');
    assert.doesNotMatch(log, /vk_/);
    for (const id of ids) assert(log.includes(`"request_id":"${id}"`));
    assert.equal((await server.get(health)).status, 200, 'and the server goes on');
  });

  test('gets a response without a body if it is a HEAD request', async (t) => {
    const server = await testServer(t);
    const head = requestText('HEAD', `/${'a'.repeat(20_000)}`);
    const { status, headers, body } = parseReply(await converse(server.url, head));
    assert.equal(status, 431);
    assert(Number(headers.get('Content-Length')) > 0);
    assert.equal(body, '');
  });

  test('cut off by a reset leaves the server running', async (t) => {
    const server = await testServer(t);
    for (const bytes of ['', 'GET', requestText('POST', health, ['Content-Length: 9'])]) {
      const socket = await open(server.url);
      socket.write(bytes);
      socket.resetAndDestroy();
    }
    assert.equal((await server.get(health)).status, 200);
    assert.doesNotMatch(server.log.lines.join(), /"level":"error"/);
  });
});

suite('a request', () => {
  test('is served with HTTP/1.0, an unknown Expect header or an Upgrade header', async (t) => {
    const { url } = await testServer(t);
    const texts = [
      `GET ${health} HTTP/1.0\r\n\r\n`,
      requestText('GET', health, ['Expect: tea', 'Connection: close']),
      requestText('GET', health, ['Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings, close']),
    ];
    for (const text of texts) {
      const { status, headers } = parseReply(await converse(url, text));
      assert.equal(status, 200, text);
      assert.match(headers.get('X-Request-Id') ?? '', /./);
    }
  });

  test('pipelined behind others on the same connection gets its response in order', async (t) => {
    const { url } = await testServer(t);
    const texts = [
      requestText('GET', health),
      requestText('GET', '/nothing'),
      requestText('POST', health, ['Content-Length: 5']).concat('hello'),
      requestText('GET', health, ['Connection: close']),
    ];
    const all = await converse(url, texts.join(''));
    const statuses = [...all.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ['200', '404', '405', '200']);
  });

  test('for a download is recorded if its client disconnects before the response', async (t) => {
    const { server, inFlight, release } = await withDownloadInFlight(t);
    inFlight.destroy();
    await once(inFlight, 'close');
    release();
    await server.vault.audit.drain();
    assert.equal(eventsOf(server.dataDir, 'certificate.download').length, 1);
    assert.equal((await server.get(health)).status, 200);
  });
});

suite('stopping the server', () => {
  test('lets a request in flight finish while no new connection is accepted', async (t) => {
    const { server, inFlight, release } = await withDownloadInFlight(t);
    let hasStopped = false;
    const stopped = server.stop(10_000).then(() => {
      hasStopped = true;
    });
    await assert.rejects(open(server.url), { code: 'ECONNREFUSED' });
    assert.equal(hasStopped, false);
    const answer = readToEnd(inFlight);
    release();
    await once(inFlight, 'data');
    // The connection is idle now; the server looks for such every 20 milliseconds.
    while (!inFlight.closed && !hasStopped) {
      server.world.advance(20);
      await server.world.turn();
    }
    const { status, body } = parseReply(await answer);
    assert.equal(status, 200);
    assert.match(body, /PRIVATE KEY/);
    await stopped;
    assert.doesNotMatch(server.log.lines.join(), /closed connections/);
  });

  test('does not wait for idle connections, used or unused', async (t) => {
    const server = await testServer(t);
    const sockets: Socket[] = [];
    for (const text of ['', requestText('GET', health), requestText('GET', '/nothing')]) {
      const socket = await open(server.url);
      socket.write(text);
      if (text !== '') await once(socket, 'data');
      sockets.push(socket);
    }
    const closed = sockets.map((socket) => readToEnd(socket));
    // The clock stands still: nothing here is waited out.
    await server.stop(10_000);
    await Promise.all(closed);
  });

  test('cuts off unfinished requests after the timeout and logs a warning', async (t) => {
    const { server, inFlight, release } = await withDownloadInFlight(t);
    const halfSent = await open(server.url);
    halfSent.write('GET /api');
    const stopped = server.stop(1000);
    await server.world.sleeping(1);
    const ends = [inFlight, halfSent].map((socket) => readToEnd(socket));
    server.world.advance(999);
    await server.world.turn();
    assert.deepEqual([inFlight.closed, halfSent.closed], [false, false]);
    server.world.advance(20);
    await stopped;
    assert.deepEqual(await Promise.all(ends), ['', '']);
    assert.match(server.log.lines.join(), /"level":"warn","after_ms":1000/);
    release();
  });
});

suite('starting the server', () => {
  test('on an unavailable address fails with a hint about --listen', async (t) => {
    const { vault, url } = await testServer(t);
    const context = serverContext(vault, { version: '0', publicUrl: undefined });
    const refused = (host: string, port: number, message: RegExp) =>
      assert.rejects(startServer(context, routes, { host, port }), (error) => {
        assert(error instanceof OperatorError);
        assert.match(error.message, message);
        assert.match(error.hint ?? '', /--listen/);
        return true;
      });
    await refused('127.0.0.1', Number(new URL(url).port), /the port is already in use/);
    await refused('192.0.2.1', 0, /this host does not have the address/);
  });
});

/** A server with a download that waits for its commit until `release` is called. */
async function withDownloadInFlight(t: Parameters<typeof testServer>[0]): Promise<{
  readonly server: TestServer;
  readonly inFlight: Socket;
  readonly release: () => void;
}> {
  const server = await testServer(t);
  await makeCertificate(server.vault, 'www');
  const { raw } = await makeKey(server.vault);
  const { db } = server.vault;
  const gate = Promise.withResolvers<void>();
  const waiting = Promise.withResolvers<void>();
  const append = db.append.bind(db);
  db.append = async (events) => {
    waiting.resolve();
    await gate.promise;
    return append(events);
  };
  const inFlight = await open(server.url);
  inFlight.write(
    requestText('GET', '/api/v1/certificates/www/private.key', [`Authorization: Bearer ${raw}`]),
  );
  await waiting.promise;
  return { server, inFlight, release: () => gate.resolve() };
}
