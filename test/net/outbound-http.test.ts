/** One request and one answer, against servers that behave and servers that do not, directly and through proxies. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { OperatorError } from '../../src/base/operator-error.ts';
import { realWorld } from '../../src/base/world.ts';
import { encodePem } from '../../src/crypto/pem.ts';
import { OutboundError, type OutboundReason, outboundHttp } from '../../src/net/outbound-http.ts';
import { identifier, makeChain, makeLeaf } from '../harness/ca/private-chain.ts';
import { forwardProxy } from '../harness/http/forward-proxy.ts';
import { loopbackGuard } from '../harness/loopback-guard.ts';
import { TestWorld } from '../harness/test-world.ts';

const direct = outboundHttp(realWorld, {}, 'vault-test/1', loopbackGuard);

async function httpServer(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server that speaks as the function lets it. */
async function tcpServer(t: TestContext, onSocket: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An HTTPS server for these names, and its CA. */
async function httpsServer(t: TestContext, names: readonly string[], listener: RequestListener) {
  const chain = await makeChain();
  const leaf = await makeLeaf(chain.intermediate, { identifiers: names.map(identifier) });
  const pem = (der: Buffer) => encodePem('CERTIFICATE', der);
  const server = createSecureServer(
    {
      cert: `${pem(leaf.certificate)}${pem(chain.intermediate.certificate)}`,
      key: encodePem('PRIVATE KEY', leaf.privateKey.expose()),
    },
    listener,
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ca: pem(chain.root.certificate),
  };
}

function failsBy(reason: OutboundReason, message = /./) {
  return (error: unknown): boolean => {
    assert(error instanceof OutboundError, String(error));
    assert.equal(error.reason, reason, error.message);
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /secret/);
    return true;
  };
}

test('a request is sent with method, path, headers and body, and the response has status, headers and body', async (t) => {
  const url = await httpServer(t, (request, response) => {
    const { method, url: path, headers } = request;
    response.writeHead(
      207,
      [
        ['X-A', '1'],
        ['x-a', '2'],
        ['Set-Cookie', 'c'],
        ['X-B', 'b'],
      ].flat(),
    );
    request
      .setEncoding('utf8')
      .on('data', (body: string) => response.write(JSON.stringify({ method, path, headers, body })));
    request.on('end', () => response.end());
  });
  const { status, headers, body } = await direct({
    method: 'PUT',
    url: `${url}/a?b=c`,
    headers: { 'X-Own': 'x' },
    body: 'größe',
  });
  assert.equal(status, 207);
  assert.equal(headers['x-a'], '1, 2');
  assert.equal(headers['x-b'], 'b');
  const seen = JSON.parse(body.toString());
  assert.equal(seen.method, 'PUT');
  assert.equal(seen.path, '/a?b=c');
  assert.equal(seen.body, 'größe');
  assert.equal(seen.headers['content-length'], '7');
  assert.equal(seen.headers['user-agent'], 'vault-test/1');
  assert.equal(seen.headers['x-own'], 'x');
});

test('connections are reused, even after a HEAD request and after an HTTP 500', async (t) => {
  const ports = new Set<number | undefined>();
  const url = await httpServer(t, (request, response) => {
    ports.add(request.socket.remotePort);
    // Without a length, Node takes a HEAD's answer for one that ends with the connection.
    response.writeHead(request.method === 'POST' ? 500 : 200, { 'Content-Length': 4 }).end('body');
  });
  for (const method of ['GET', 'HEAD', 'POST', 'GET'] as const) {
    const { body } = await direct({ method, url });
    assert.equal(body.toString(), method === 'HEAD' ? '' : 'body');
  }
  assert.equal(ports.size, 1);
});

test('a redirect is returned as the response and is not followed', async (t) => {
  let requests = 0;
  const url = await httpServer(t, (_, response) => {
    requests++;
    response.writeHead(302, { Location: '/elsewhere' }).end();
  });
  const { status, headers } = await direct({ method: 'GET', url });
  assert.equal(status, 302);
  assert.equal(headers.location, '/elsewhere');
  assert.equal(requests, 1);
});

test('a response body that is larger than maxBytes is rejected', async (t) => {
  const url = await httpServer(t, (request, response) => {
    const size = Number(request.url?.slice(1));
    if (size % 2 === 0) response.setHeader('Content-Length', size);
    response.end(Buffer.alloc(size));
  });
  for (const size of [99, 100]) {
    assert.equal((await direct({ method: 'GET', url: `${url}/${size}`, maxBytes: 100 })).body.length, size);
  }
  for (const size of [101, 102, 5_000_000]) {
    const asking = direct({ method: 'GET', url: `${url}/${size}`, maxBytes: 100 });
    await assert.rejects(asking, failsBy('too-large', /sent a response larger than 100 bytes$/));
  }
  await assert.rejects(direct({ method: 'GET', url: `${url}/1048577` }), failsBy('too-large', /1048576/));
});

test('an endless response body is rejected at the limit, and the connection is closed', async (t) => {
  const closed = Promise.withResolvers<void>();
  const url = await httpServer(t, (_, response) => {
    const more = () => {
      while (response.write(Buffer.alloc(65_536)));
    };
    response.on('drain', more).on('close', () => closed.resolve());
    more();
  });
  await assert.rejects(direct({ method: 'GET', url }), failsBy('too-large'));
  await closed.promise;
});

const deadlines: readonly [string, string][] = [
  ['never responds', ''],
  ['stops in the head', 'HTTP/1.1 200 OK\r\nContent-'],
  ['stops in the body', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'],
];

for (const [title, text] of deadlines) {
  test(`a request to a server that ${title} ends at the deadline or when the signal aborts`, async (t) => {
    const world = new TestWorld();
    let arrived = Promise.withResolvers<void>();
    let left = Promise.withResolvers<void>();
    const url = await tcpServer(t, (socket) => {
      socket.on('close', () => left.resolve());
      socket.once('data', () => socket.write(text, () => arrived.resolve()));
    });
    const { host } = new URL(url);
    const ask = outboundHttp(world, {}, 'vault-test/1', loopbackGuard);
    const asking = ask({ method: 'GET', url: `${url}/secret`, timeoutMs: 5000 });
    await arrived.promise;
    world.advance(5000);
    await assert.rejects(asking, failsBy('timeout', new RegExp(`^${host} did not answer within 5 s$`)));
    await left.promise;
    arrived = Promise.withResolvers();
    left = Promise.withResolvers();
    const stop = new AbortController();
    const second = ask({ method: 'POST', url, body: 'secret', signal: stop.signal });
    await arrived.promise;
    stop.abort();
    await assert.rejects(second, failsBy('aborted'));
    await left.promise;
  });
}

test('a server that sends single bytes slowly does not extend the deadline', async (t) => {
  const world = new TestWorld();
  const url = await tcpServer(t, (socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n');
      const drip = async () => {
        for (let count = 0; count < 200 && socket.writable; count++) {
          socket.write('x');
          world.advance(1000);
          await world.turn();
        }
      };
      drip().catch(assert.fail);
    });
  });
  const ask = outboundHttp(world, {}, 'vault-test/1', loopbackGuard);
  await assert.rejects(ask({ method: 'GET', url }), failsBy('timeout', /within 30 s$/));
});

test('nothing is sent once the signal is aborted', async (t) => {
  let connections = 0;
  const url = await tcpServer(t, () => connections++);
  await assert.rejects(direct({ method: 'GET', url, signal: AbortSignal.abort() }), failsBy('aborted'));
  assert.equal(connections, 0);
});

test('errors distinguish a closed connection, a refused connection and another protocol', async (t) => {
  const cases: readonly [string, OutboundReason, RegExp][] = [
    ['', 'cut-off', /closed the connection/],
    ['HTTP/1.1 200', 'cut-off', /closed the connection/],
    ['HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', 'cut-off', /closed the connection/],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel', 'cut-off', /closed the connection/],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 'cut-off', /not respond with HTTP: /],
    ['SSH-2.0-OpenSSH_9.2\r\n', 'cut-off', /did not respond with HTTP: /],
    [
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      'cut-off',
      /not respond with HTTP: /,
    ],
    [`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`, 'cut-off', /not respond with HTTP: /],
    [
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
      'cut-off',
      /closed the connection/,
    ],
  ];
  for (const [text, reason, message] of cases) {
    const url = await tcpServer(t, (socket) => socket.once('data', () => socket.end(text)));
    await assert.rejects(
      direct({ method: 'GET', url: `${url}/secret` }),
      failsBy(reason, message),
      text.slice(0, 60),
    );
  }
  const server = createTcpServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  for (const host of ['127.0.0.1', 'localhost']) {
    const asking = direct({ method: 'GET', url: `http://${host}:${port}/secret` });
    await assert.rejects(asking, failsBy('unreachable', /cannot connect to .*: connection refused/));
  }
});

test('an invalid URL and an unsupported protocol are reported as unreachable', async () => {
  for (const url of ['no URL', '', 'ftp://example.com/', 'file:///etc/passwd']) {
    await assert.rejects(direct({ method: 'GET', url }), failsBy('unreachable'));
  }
});

test('a private CA is trusted only if it is configured, for the names in its certificates', async (t) => {
  const { url, ca } = await httpsServer(t, ['127.0.0.1'], (_, response) => response.end('ok'));
  assert.equal((await direct({ method: 'GET', url, ca })).body.toString(), 'ok');
  await assert.rejects(direct({ method: 'GET', url }), failsBy('untrusted', /is not trusted: /));
  const { root } = await makeChain();
  const wrong = encodePem('CERTIFICATE', root.certificate);
  await assert.rejects(direct({ method: 'GET', url, ca: wrong }), failsBy('untrusted'));
  const byName = url.replace('127.0.0.1', 'localhost');
  await assert.rejects(
    direct({ method: 'GET', url: byName, ca }),
    failsBy('untrusted', /certificate is for /),
  );
});

test('https to a server without TLS is reported as unreachable, not as untrusted', async (t) => {
  const url = await httpServer(t, (_, response) => response.end());
  await assert.rejects(
    direct({ method: 'GET', url: url.replace('http:', 'https:') }),
    failsBy('unreachable'),
  );
});

test('https requests use a CONNECT tunnel through the proxy in HTTPS_PROXY or https_proxy', async (t) => {
  const { url, ca } = await httpsServer(t, ['127.0.0.1'], (_, response) => response.end('ok'));
  const { host } = new URL(url);
  for (const name of ['HTTPS_PROXY', 'https_proxy']) {
    const proxy = await forwardProxy(t);
    const ask = outboundHttp(realWorld, { [name]: proxy.url }, 'vault-test/1', loopbackGuard);
    for (let count = 0; count < 2; count++) assert.equal((await ask({ method: 'GET', url, ca })).status, 200);
    assert.deepEqual(proxy.asked, [`CONNECT ${host}`], name);
    await assert.rejects(ask({ method: 'GET', url }), failsBy('untrusted'));
  }
});

test('http requests go through the proxy in HTTP_PROXY', async (t) => {
  const url = await httpServer(t, (_, response) => response.end('ok'));
  const proxy = await forwardProxy(t);
  const ask = outboundHttp(realWorld, { HTTP_PROXY: proxy.url }, 'vault-test/1', loopbackGuard);
  assert.equal((await ask({ method: 'GET', url: `${url}/x` })).body.toString(), 'ok');
  assert.deepEqual(proxy.asked, [`GET ${url}/x`]);
});

test('a proxy can be configured without a scheme and with credentials', async (t) => {
  const { url, ca } = await httpsServer(t, ['127.0.0.1'], (_, response) => response.end('ok'));
  const proxy = await forwardProxy(t);
  const plain = proxy.url.replace('http://', '');
  for (const value of [plain, ` ${plain}/ `, `http://user:p%40ss@${plain}`]) {
    const ask = outboundHttp(realWorld, { HTTPS_PROXY: value }, 'vault-test/1', loopbackGuard);
    assert.equal((await ask({ method: 'GET', url, ca })).status, 200);
  }
  const credentials = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
  assert.deepEqual(proxy.credentials, [undefined, undefined, credentials]);
});

test('an invalid proxy URL is rejected at startup without showing its password', () => {
  for (const value of ['socks5://user:secret@proxy:1080', 'http://', 'ftp://proxy', 'http://a b']) {
    assert.throws(
      () => outboundHttp(realWorld, { HTTPS_PROXY: value }, 'vault-test/1', loopbackGuard),
      (error: unknown) =>
        error instanceof OperatorError && error.message === 'HTTPS_PROXY is not the URL of an HTTP proxy',
    );
  }
  outboundHttp(realWorld, { HTTPS_PROXY: '', http_proxy: undefined }, 'vault-test/1', loopbackGuard);
});

test('hosts listed in NO_PROXY bypass the proxy', async (t) => {
  const { url, ca } = await httpsServer(t, ['127.0.0.1', 'localhost'], (_, response) => response.end('ok'));
  const { port } = new URL(url);
  const proxy = await forwardProxy(t);
  const lists = ['127.0.0.1', '*', `example.com, 127.0.0.1:${port}`, '127.0.0.0-127.0.0.9'];
  for (const [index, list] of lists.entries()) {
    const name = index % 2 === 0 ? 'NO_PROXY' : 'no_proxy';
    const ask = outboundHttp(
      realWorld,
      { HTTPS_PROXY: proxy.url, [name]: list },
      'vault-test/1',
      loopbackGuard,
    );
    await ask({ method: 'GET', url, ca });
  }
  assert.deepEqual(proxy.asked, []);
  const ask = outboundHttp(
    realWorld,
    { HTTPS_PROXY: proxy.url, NO_PROXY: '127.0.0.1' },
    'vault-test/1',
    loopbackGuard,
  );
  await ask({ method: 'GET', url: url.replace('127.0.0.1', 'localhost'), ca });
  assert.deepEqual(proxy.asked, [`CONNECT localhost:${port}`]);
});

test('an error of the proxy or of the connection to it includes the address of the proxy', async (t) => {
  const url = 'https://ca.example.test/secret';
  for (const refusal of ['403 Forbidden', '407 Proxy Authentication Required', '502 Bad Gateway']) {
    const proxy = await forwardProxy(t, { refusal });
    const value = proxy.url.replace('//', '//user:secret@');
    const ask = outboundHttp(realWorld, { HTTPS_PROXY: value }, 'vault-test/1', loopbackGuard);
    const message = new RegExp(
      `^cannot connect to ca\\.example\\.test: .*${new URL(proxy.url).host}.*${refusal}`,
    );
    await assert.rejects(ask({ method: 'GET', url }), failsBy('unreachable', message));
  }
  const ask = outboundHttp(realWorld, { HTTPS_PROXY: 'http://127.0.0.1:1' }, 'vault-test/1', loopbackGuard);
  await assert.rejects(
    ask({ method: 'GET', url }),
    failsBy('unreachable', /connection refused \(127\.0\.0\.1:1\)$/),
  );
});

test('a request through a proxy that never responds ends at the deadline or when the signal aborts', async (t) => {
  const world = new TestWorld();
  let arrived = Promise.withResolvers<void>();
  const proxy = await forwardProxy(t, { refusal: 'silent', onConnect: () => arrived.resolve() });
  const ask = outboundHttp(world, { HTTPS_PROXY: proxy.url }, 'vault-test/1', loopbackGuard);
  const url = 'https://ca.example.test/';
  const asking = ask({ method: 'GET', url });
  await arrived.promise;
  world.advance(30_000);
  await assert.rejects(asking, failsBy('timeout', /^ca\.example\.test did not answer within 30 s$/));
  arrived = Promise.withResolvers();
  const stop = new AbortController();
  const second = ask({ method: 'GET', url, signal: stop.signal });
  await arrived.promise;
  stop.abort();
  await assert.rejects(second, failsBy('aborted'));
});
