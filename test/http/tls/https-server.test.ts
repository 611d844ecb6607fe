/** HTTPS on its socket: what TLS agrees on, what is refused and how, and that no client can block it. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import { type ConnectionOptions, connect, TLSSocket } from 'node:tls';
import { putChallenge } from '../../harness/http/acme-fixtures.ts';
import { renewCertificate } from '../../harness/http/fixtures.ts';
import { handshake, shownBy, visit } from '../../harness/http/https-client.ts';
import { httpsServer, twoLooks, untilSeen } from '../../harness/http/https-fixtures.ts';
import { converse, open, parseReply, readToEnd, requestText } from '../../harness/http/raw.ts';
import type { TestServer } from '../../harness/http/test-server.ts';
import { helloOf } from '../../harness/http/tls-hello.ts';

const health = '/api/v1/health';

/** What TLS agrees on with a client of these options. */
async function agreed(t: TestContext, server: TestServer, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = await handshake(server.url, options);
  assert(socket instanceof TLSSocket, `${JSON.stringify(options)}: ${socket}`);
  t.after(() => socket.destroy());
  return socket;
}

/** A session as a client would resume it. */
async function session(server: TestServer, version: 'TLSv1.2' | 'TLSv1.3'): Promise<Buffer> {
  const { hostname, port } = new URL(server.url);
  const socket = connect({
    host: hostname,
    port: Number(port),
    rejectUnauthorized: false,
    maxVersion: version,
  });
  const ticket = once(socket, 'session');
  socket.write(requestText('GET', health, ['Connection: close']));
  socket.resume();
  const [bytes] = (await ticket) as [Buffer];
  socket.destroy();
  return bytes;
}

suite('a handshake', () => {
  test('agrees on TLS 1.3 and on TLS 1.2, and serves requests by both', async (t) => {
    const server = await httpsServer(t);
    for (const version of ['TLSv1.3', 'TLSv1.2'] as const) {
      const socket = await agreed(t, server, { minVersion: version, maxVersion: version });
      assert.equal(socket.getProtocol(), version);
      socket.write(requestText('GET', health, ['Connection: close']));
      assert.match(await readToEnd(socket), /^HTTP\/1\.1 200 OK\r\n.*"status":"ok"/s);
    }
  });

  test('prefers X25519MLKEM768, even if the client guessed another group', async (t) => {
    const server = await httpsServer(t);
    const cases: [offered: string | undefined, chosen: string][] = [
      [undefined, 'X25519MLKEM768'],
      ['X25519:X25519MLKEM768', 'X25519MLKEM768'],
      ['P-256:X25519:X25519MLKEM768', 'X25519MLKEM768'],
      ['X25519', 'X25519'],
      ['P-256', 'prime256v1'],
      ['P-384', 'secp384r1'],
    ];
    for (const [offered, chosen] of cases) {
      const socket = await agreed(t, server, offered === undefined ? {} : { ecdhCurve: offered });
      assert.equal((socket.getEphemeralKeyInfo() as { name?: string }).name, chosen, offered ?? 'all');
    }
  });

  const refused: Readonly<Record<string, [options: ConnectionOptions, code: RegExp]>> = {
    'by TLS 1.1': [
      { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
      /PROTOCOL_VERSION|HANDSHAKE_FAILURE/,
    ],
    'with a cipher in CBC mode': [
      { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-SHA256' },
      /HANDSHAKE_FAILURE/,
    ],
    'without forward secrecy': [{ maxVersion: 'TLSv1.2', ciphers: 'AES128-GCM-SHA256' }, /HANDSHAKE_FAILURE/],
    'with other groups only': [{ ecdhCurve: 'P-521' }, /HANDSHAKE_FAILURE/],
    'for HTTP/2 only': [{ ALPNProtocols: ['h2'] }, /NO_APPLICATION_PROTOCOL/],
  };
  for (const [what, [options, code]] of Object.entries(refused)) {
    test(`is refused ${what}`, async (t) => {
      const server = await httpsServer(t);
      const ended = await handshake(server.url, options);
      assert(ended instanceof Error);
      assert.match((ended as NodeJS.ErrnoException).code ?? ended.message, code);
      assert.equal((await visit(server.url + health)).status, 200, 'and the server goes on');
      assert.doesNotMatch(server.log.lines.join('\n'), /"level":"(warn|error)"/);
    });
  }

  test('shows the whole chain, which leads to the root of the private CA', async (t) => {
    const server = await httpsServer(t);
    const root = new X509Certificate((await visit(`${server.url}/client/ca.crt`)).body);
    const socket = await agreed(t, server, {});
    const shown = socket.getPeerCertificate(true);
    const [leaf, intermediate] = [shown.raw, shown.issuerCertificate.raw].map(
      (raw) => new X509Certificate(raw),
    );
    assert(leaf && intermediate);
    assert(leaf.verify(intermediate.publicKey));
    assert(intermediate.verify(root.publicKey));
  });
});

suite('session tickets', () => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`of ${version} resume a session, and are rejected once their key is an hour old`, async (t) => {
      const server = await httpsServer(t);
      const resumed = await agreed(t, server, {
        session: await session(server, version),
        maxVersion: version,
      });
      assert.equal(resumed.isSessionReused(), true);
      const old = await session(server, version);
      await server.world.sleeping(1);
      server.world.advance(3_600_000);
      await twoLooks(server);
      const renewed = await agreed(t, server, { session: old, maxVersion: version });
      assert.equal(renewed.isSessionReused(), false);
      const next = await agreed(t, server, { session: await session(server, version), maxVersion: version });
      assert.equal(next.isSessionReused(), true);
    });
  }
});

test('a TLS session is not resumed after the certificate was renewed', async (t) => {
  const server = await httpsServer(t);
  const old = await session(server, 'TLSv1.3');
  const before = shownBy(await agreed(t, server, {})).leaf.serialNumber;
  await renewCertificate(server.vault, 'vault');
  await untilSeen(server, async () => {
    const socket = await agreed(t, server, {});
    return shownBy(socket).leaf.serialNumber === before ? undefined : true;
  });
  const next = await agreed(t, server, { session: old });
  assert.equal(next.isSessionReused(), false);
  assert.notEqual(shownBy(next).leaf.serialNumber, before);
});

suite('a tls-alpn-01 challenge', () => {
  const challenge = { type: 'tls-alpn-01', identifier: 'www.example.test', key_authorization: 'token.print' };

  test('gets its own certificate on the HTTPS port, and other clients get that of the vault', async (t) => {
    const server = await httpsServer(t);
    await putChallenge(server.vault, challenge);
    const asCa = { servername: challenge.identifier, ALPNProtocols: ['acme-tls/1'] };
    const { hostname, port } = new URL(server.url);
    const looking = connect({ host: hostname, port: Number(port), rejectUnauthorized: false, ...asCa });
    await once(looking, 'secureConnect');
    assert.equal(looking.alpnProtocol, 'acme-tls/1');
    assert.equal(shownBy(looking).leaf.subjectAltName, 'DNS:www.example.test');
    looking.resume();
    await once(looking, 'close');
    const asClient = await agreed(t, server, { servername: challenge.identifier });
    assert.equal(shownBy(asClient).leaf.subjectAltName, 'DNS:vault.example.test');
    const unknown = await handshake(server.url, { ...asCa, servername: 'other.example.test' });
    assert.match((unknown as NodeJS.ErrnoException).code ?? '', /HANDSHAKE_FAILURE/);
  });
});

suite('the HTTPS port', () => {
  test('rejects plain HTTP with an explanation, and closes the connection without a redirect', async (t) => {
    const server = await httpsServer(t);
    const raw = `vk_abcdefghijkl.${'s'.repeat(43)}`;
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const sent = requestText(method, health, [`Authorization: Bearer ${raw}`]);
      const { status, headers, body } = parseReply(await converse(server.url, sent));
      assert.equal(status, 400, method);
      assert.equal(headers.get('Connection'), 'close');
      assert.equal(headers.get('Location'), null);
      assert.match(headers.get('X-Request-Id') ?? '', /./);
      assert.match(JSON.parse(body).detail, /requires HTTPS.*plain HTTP.*Use https:\/\/.*revoke/);
    }
    assert.doesNotMatch(server.log.lines.join('\n'), /vk_/);
  });

  test('closes connections that send neither TLS nor HTTP, without a response', async (t) => {
    const server = await httpsServer(t);
    for (const bytes of [
      'EHLO\r\n',
      '\x16\x03\x01\0\x04\x02\0\0\0',
      '\xff'.repeat(50_000),
      'get / HTTP/1.1\r\n\r\n',
    ]) {
      const socket = await open(server.url);
      socket.write(bytes, 'latin1');
      assert.equal(await readToEnd(socket), '', JSON.stringify(bytes.slice(0, 10)));
    }
    assert.equal((await visit(server.url + health)).status, 200);
  });
});

suite('a slow or broken client', () => {
  test('is cut off if it sends nothing or stops in the middle of its handshake', async (t) => {
    const server = await httpsServer(t, { handshakeMs: 1000 });
    const silent = await open(server.url);
    assert.equal(await readToEnd(silent), '');
    const hello = await helloOf({});
    let answer = '';
    // Where the machine pauses for as long as the limit, the server has no time to answer.
    while (answer === '') {
      const halting = await open(server.url);
      halting.write(hello);
      answer = await readToEnd(halting);
    }
    assert.equal((await visit(server.url + health)).status, 200);
  });

  test('cut off at any point of its handshake leaves the server running', async (t) => {
    const server = await httpsServer(t);
    const hello = await helloOf({});
    for (const size of [0, 1, 6, hello.length]) {
      const socket = await open(server.url);
      if (size > 0) socket.write(hello.subarray(0, size));
      socket.resetAndDestroy();
    }
    assert.equal((await visit(server.url + health)).status, 200);
    assert.doesNotMatch(server.log.lines.join('\n'), /"level":"(warn|error)"/);
  });
});

suite('stopping the HTTPS server', () => {
  test('waits neither for silent connections nor for unfinished handshakes nor for idle clients', async (t) => {
    const server = await httpsServer(t);
    const sockets: Socket[] = [];
    for (const bytes of [Buffer.alloc(0), await helloOf({})]) {
      const socket = await open(server.url);
      if (bytes.length > 0) {
        socket.write(bytes);
        await once(socket, 'readable');
      }
      sockets.push(socket);
    }
    const idle = await agreed(t, server, {});
    idle.write(requestText('GET', health));
    await once(idle, 'data');
    const closed = [...sockets, idle].map((socket) => readToEnd(socket));
    // The clock stands still: nothing here is waited out.
    await server.stop(10_000);
    await Promise.all(closed);
  });
});
