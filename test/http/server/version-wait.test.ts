/** Connections whose request waits for a new version: what ends them, and what they cost others. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { hour } from '../../../src/base/duration.ts';
import { makeCertificate, makeKey, renewCertificate } from '../../harness/http/fixtures.ts';
import { handshake, visit } from '../../harness/http/https-client.ts';
import { httpsServer } from '../../harness/http/https-fixtures.ts';
import { converse, open, parseReply, readToEnd, requestText } from '../../harness/http/raw.ts';
import type { TestServer } from '../../harness/http/test-server.ts';
import { type WaitedServer, waitedFile, waitedServer, waitingAre } from '../../harness/http/waits.ts';

/** The text of a request that waits. */
async function waitText(
  { key, tagOf }: WaitedServer,
  seconds = 60,
  more: readonly string[] = [],
): Promise<string> {
  return requestText('GET', `${waitedFile}?wait=${seconds}`, [
    `Authorization: Bearer ${key.raw}`,
    `If-None-Match: ${await tagOf(waitedFile)}`,
    ...more,
  ]);
}

const health = (lines: readonly string[] = []) => requestText('GET', '/api/v1/health', lines);
const last = ['Connection: close'];

/** The statuses of the responses in the received text. */
const statusesIn = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));

/** Lets the server look for idle connections until it has stopped. */
async function untilStopped({ world }: Pick<TestServer, 'world'>, stopped: Promise<void>): Promise<void> {
  let isStopped = false;
  const over = stopped.then(() => {
    isStopped = true;
  });
  while (!isStopped) {
    await Promise.race([over, world.sleeping(1)]);
    world.advance(20);
    // The connections need turns of the event loop, not time.
    await world.turn();
  }
}

suite('a stop of the server', () => {
  test('ends all waits with 304, Retry-After and a closed connection', async (t) => {
    const waited = await waitedServer(t);
    const { server } = waited;
    const text = await waitText(waited, 300);
    const sockets = await Promise.all([1, 2, 3].map(() => open(server.url)));
    const answers = sockets.map((socket) => readToEnd(socket));
    for (const socket of sockets) socket.write(text);
    await waitingAre(server, 3);
    const stopped = server.stop(hour);
    await untilStopped(server, stopped);
    for (const answer of answers) {
      const { status, headers, body } = parseReply(await answer);
      assert.deepEqual([status, headers.get('Retry-After'), body], [304, '5', '']);
    }
    assert.doesNotMatch(server.log.lines.join('\n'), /requests in flight/);
  });

  test('answers a request that begins to wait while it stops', async (t) => {
    const waited = await waitedServer(t);
    const { server } = waited;
    const text = await waitText(waited, 300);
    const looking = Promise.withResolvers<void>();
    const look = server.vault.freshness.look.bind(server.vault.freshness);
    const held = t.mock.method(server.vault.freshness, 'look', async () => {
      await looking.promise;
      await look();
    });
    const answer = converse(server.url, text);
    while (held.mock.callCount() === 0) await server.world.turn();
    const stopped = server.stop(hour);
    looking.resolve();
    await untilStopped(server, stopped);
    const { status, headers } = parseReply(await answer);
    assert.deepEqual([status, headers.get('Retry-After')], [304, '5']);
  });
});

suite('a client that disconnects while it waits', () => {
  for (const [how, leave] of [
    ['closes', 'destroy'],
    ['resets', 'resetAndDestroy'],
  ] as const) {
    test(`frees its place and is logged as aborted if it ${how} the connection`, async (t) => {
      const waited = await waitedServer(t, { maxWaits: 2 });
      const { server } = waited;
      const text = await waitText(waited);
      const socket = await open(server.url);
      socket.write(text);
      await waitingAre(server, 1);
      const refused = parseReply(await converse(server.url, await waitText(waited, 60, last)));
      assert.deepEqual([refused.status, refused.headers.get('Retry-After')], [304, '60']);
      socket[leave]();
      await waitingAre(server, 0);
      const again = await open(server.url);
      again.write(text);
      await waitingAre(server, 1);
      again.destroy();
      await waitingAre(server, 0);
      const aborted = server.log.lines
        .map((line) => JSON.parse(line))
        .filter((line) => line.aborted === true);
      assert.deepEqual(
        aborted.map(({ status }) => status),
        [304, 304],
      );
    });
  }

  test('gets nothing if it closes only its side, and frees its place after a second', async (t) => {
    const waited = await waitedServer(t);
    const { server } = waited;
    const text = await waitText(waited);
    const socket = await open(server.url);
    const answer = readToEnd(socket);
    socket.end(text);
    assert.equal(await answer, '');
    await waitingAre(server, 0);
  });
});

suite('a connection with a request that waits', () => {
  test('serves the requests after it when the wait is over, in their order', async (t) => {
    const waited = await waitedServer(t);
    const { server } = waited;
    const socket = await open(server.url);
    const answer = readToEnd(socket);
    socket.write((await waitText(waited)) + health() + (await waitText(waited, 0)) + health(last));
    await waitingAre(server, 1);
    await renewCertificate(server.vault, 'www');
    server.world.advance(1000);
    assert.deepEqual(statusesIn(await answer), [200, 200, 200, 200]);
  });

  test('can wait again and again, each time for the current version', async (t) => {
    const waited = await waitedServer(t);
    const { server } = waited;
    const socket = await open(server.url);
    let received = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      received += chunk;
    });
    for (let version = 2; version < 5; version += 1) {
      received = '';
      socket.write(await waitText(waited));
      await waitingAre(server, 1);
      await renewCertificate(server.vault, 'www');
      server.world.advance(1000);
      while (!received.endsWith('-----END PRIVATE KEY-----\n')) await once(socket, 'data');
      const { status, headers } = parseReply(received);
      assert.deepEqual([status, headers.get('Certificate-Version')], [200, String(version)]);
    }
    socket.destroy();
  });

  test('is not closed by the limits for idle connections, headers and bodies', async (t) => {
    const limits = { headersMs: 500, requestMs: 500, idleMs: 1000, stalledMs: 500 };
    const waited = await waitedServer(t, { connectionLimits: limits });
    const { server } = waited;
    const text = await waitText(waited, 60, last);
    const waiting = await open(server.url);
    const answer = readToEnd(waiting);
    waiting.write(text);
    await waitingAre(server, 1);
    // Each of these connections is closed by such a limit, one after the other.
    assert.equal(parseReply(await converse(server.url, 'GET / HTTP/1.1\r\nX: ')).status, 408);
    assert.equal(parseReply(await converse(server.url, health())).status, 200);
    assert.equal(server.context.waits.size, 1);
    server.world.advance(60_000);
    assert.equal(parseReply(await answer).status, 304);
  });

  test('does not take the place of others, and is not closed for a new one', async (t) => {
    const waited = await waitedServer(t, { connectionLimits: { most: 2 } });
    const { server } = waited;
    const text = await waitText(waited);
    const sockets = [];
    for (let count = 1; count <= 5; count += 1) {
      const socket = await open(server.url);
      sockets.push(socket);
      socket.write(text);
      await waitingAre(server, count);
    }
    for (let count = 0; count < 4; count += 1) {
      const other = await open(server.url);
      other.write(health());
      const [chunk] = (await once(other, 'data')) as [Buffer];
      assert.match(String(chunk), /^HTTP\/1\.1 200 /);
    }
    assert.equal(server.context.waits.size, 5);
    for (const socket of sockets) socket.destroy();
    await waitingAre(server, 0);
  });

  test('counts as a connection again after its response', async (t) => {
    const waited = await waitedServer(t, { connectionLimits: { most: 2 } });
    const { server } = waited;
    const text = await waitText(waited);
    const sockets = [];
    for (let count = 1; count <= 3; count += 1) {
      const socket = await open(server.url);
      sockets.push({ socket, closed: readToEnd(socket) });
      socket.write(text);
      await waitingAre(server, count);
    }
    server.world.advance(60_000);
    await waitingAre(server, 0);
    // With three idle connections of two, each new one closes the one that has been idle for longest.
    const fresh = await Promise.all([1, 2, 3].map(() => open(server.url)));
    for (const { closed } of sockets) assert.deepEqual(statusesIn(await closed), [304]);
    for (const socket of fresh) socket.destroy();
  });

  test('cannot use up the memory for the bodies of others with pipelined requests', async (t) => {
    const waited = await waitedServer(t, { connectionLimits: { retained: 100_000 } });
    const { server } = waited;
    const admin = await makeKey(server.vault, { name: 'admin', role: 'admin' });
    const text = await waitText(waited, 60, last);
    const harmless = await open(server.url);
    const answer = readToEnd(harmless);
    harmless.write(text);
    await waitingAre(server, 1);
    const greedy: Promise<string>[] = [];
    for (let count = 2; count <= 4; count += 1) {
      const socket = await open(server.url);
      greedy.push(readToEnd(socket));
      socket.write(await waitText(waited));
      await waitingAre(server, count);
      socket.write(`GET /${'b'.repeat(15_000)}`);
    }
    const upload = await open(server.url);
    const uploaded = readToEnd(upload);
    const body = JSON.stringify({ a: 'x'.repeat(60_000) });
    const lines = [
      ...[`Authorization: Bearer ${admin.raw}`, 'Content-Type: application/json', ...last],
      `Content-Length: ${body.length}`,
    ];
    upload.write(requestText('POST', '/api/v1/certificates', lines) + body.slice(0, -1));
    const first = await Promise.race([
      uploaded.then(() => 'the upload'),
      ...greedy.map((closed) => closed.then(() => 'a connection with a request that waits')),
    ]);
    assert.equal(first, 'a connection with a request that waits');
    upload.write(body.slice(-1));
    assert.equal(parseReply(await uploaded).status, 400);
    server.world.advance(60_000);
    assert.equal(parseReply(await answer).status, 304);
  });

  test('over HTTPS gets the new version, and does not take the place of others', async (t) => {
    const server = await httpsServer(t, { connectionLimits: { most: 1 } });
    await makeCertificate(server.vault, 'www');
    const { raw } = await makeKey(server.vault);
    const known = await visit(`${server.url}${waitedFile}`, { headers: { Authorization: `Bearer ${raw}` } });
    const lines = [`Authorization: Bearer ${raw}`, `If-None-Match: ${known.headers.etag}`, ...last];
    const answers: Promise<string>[] = [];
    for (let count = 1; count <= 3; count += 1) {
      const socket = await handshake(server.url);
      assert(socket instanceof TLSSocket);
      answers.push(readToEnd(socket));
      socket.write(requestText('GET', `${waitedFile}?wait=60`, lines));
      await waitingAre(server, count);
    }
    await renewCertificate(server.vault, 'www');
    server.world.advance(1000);
    for (const answer of answers) assert.equal(parseReply(await answer).status, 200);
  });
});

suite('requests beyond the maximum number of waits', () => {
  test('get 304 and Retry-After immediately, and a new version as others', async (t) => {
    const waited = await waitedServer(t, { maxWaits: 0 });
    const { server, key } = waited;
    const text = await waitText(waited, 300, last);
    const { status, headers } = parseReply(await converse(server.url, text));
    assert.deepEqual([status, headers.get('Retry-After')], [304, '60']);
    const line = JSON.parse(server.log.lines.at(-1) ?? '');
    assert.deepEqual([line.status, line.actor, line.waited_ms], [304, key.actor, 0]);
    await renewCertificate(server.vault, 'www');
    assert.equal(parseReply(await converse(server.url, text)).status, 200);
  });
});

suite('a request with long headers', () => {
  /** A request that waits, with this many bytes of header names and values. */
  const textOf = async (waited: WaitedServer, size: number) => {
    const textWith = (filler: string) => waitText(waited, 300, [...last, `X-Filler: ${filler}`]);
    const [, ...lines] = (await textWith('')).trimEnd().split('\r\n');
    const rest = lines.reduce((sum, line) => sum + line.replace(/: ?/, '').length, 0);
    return textWith('x'.repeat(size - rest));
  };

  test('does not wait if they are longer than 8 KiB, and gets 304 and Retry-After', async (t) => {
    const waited = await waitedServer(t);
    const { server } = waited;
    const { status, headers } = parseReply(await converse(server.url, await textOf(waited, 8193)));
    assert.deepEqual([status, headers.get('Retry-After')], [304, '60']);
  });

  test('waits if they are not longer', async (t) => {
    const waited = await waitedServer(t);
    const { server } = waited;
    const answer = converse(server.url, await textOf(waited, 8192));
    await waitingAre(server, 1);
    await renewCertificate(server.vault, 'www');
    server.world.advance(1000);
    assert.equal(parseReply(await answer).status, 200);
  });
});
