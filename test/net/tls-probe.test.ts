/** Probes of real TLS servers: what they present, and how servers fail that present nothing or mean harm. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { before, suite, type TestContext, test } from 'node:test';
import { createSecureContext, type TlsOptions } from 'node:tls';
import { generatePrivateKey, publicKeyOf } from '../../src/crypto/key-pair.ts';
import { issueIntermediate, type X509Issuer } from '../../src/crypto/x509/x509-issuance.ts';
import type { LookupAll } from '../../src/net/outbound-guard.ts';
import { outboundGuard } from '../../src/net/outbound-guard.ts';
import { ProbeFailure, type ProbeTarget, probeLimit, probeTls } from '../../src/net/tls-probe.ts';
import { dates, identifier, makeChain, makeLeaf, type PrivateChain } from '../harness/ca/private-chain.ts';
import { stapledChain } from '../harness/endpoints/stapled-chain.ts';
import { closed, identityOf, tlsServer } from '../harness/endpoints/tls-servers.ts';
import { loopbackAllowed, loopbackGuard } from '../harness/loopback-guard.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { TestWorld } from '../harness/test-world.ts';

const { signal } = new AbortController();
let chain: PrivateChain;
before(async () => {
  chain = await makeChain();
});

const usual = () => identityOf(chain.leaf, chain.intermediate);

type Options = Partial<ProbeTarget> & {
  readonly world?: TestWorld;
  readonly guard?: typeof loopbackGuard;
  readonly stop?: AbortSignal;
};

const probe = (
  port: number,
  { world = new TestWorld(), guard = loopbackGuard, stop = signal, ...target }: Options = {},
) =>
  probeTls(
    { world, guard },
    { host: '127.0.0.1', port, serverName: 'www.example.com', starttls: null, ...target },
    stop,
  );

/** The same certificate with a month 13, which OpenSSL presents and cannot read. */
function withoutDate({ certificate, privateKey }: X509Issuer): X509Issuer {
  const broken = Buffer.from(certificate);
  const [utcTime, size] = [0x17, 13];
  const at = broken.indexOf(Buffer.from([utcTime, size]));
  assert(at > 0, 'a certificate with a date before 2050');
  broken.write('991332000000Z', at + 2, 'latin1');
  return { certificate: broken, privateKey };
}

async function failure(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => assert.fail('the probe found a certificate'),
    (reason: unknown) => reason,
  );
  assert(error instanceof ProbeFailure, String(error));
  return error.message;
}

/** A TCP server, which ends with the test. */
async function tcpServer(t: TestContext, serve: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    serve(socket.on('error', () => undefined));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

suite('a probe', () => {
  test('returns the chain from the leaf upwards, and the TLS version', async (t) => {
    const { port } = await tlsServer(t, identityOf(chain.leaf, chain.intermediate, chain.root));
    const { certificates, tlsVersion, isStapled } = await probe(port);
    assert.deepEqual(
      certificates.map(({ raw }) => raw),
      [chain.leaf, chain.intermediate, chain.root].map(({ certificate }) => certificate),
    );
    assert.deepEqual([tlsVersion, isStapled], ['TLSv1.3', false]);
  });

  test('returns everything that the server sends in its order, but nothing twice', async (t) => {
    const stranger = await makeLeaf((await makeChain()).intermediate);
    const { leaf, root, intermediate } = chain;
    const { port } = await tlsServer(t, identityOf(leaf, leaf, root, stranger, root, intermediate));
    const { certificates } = await probe(port);
    assert.deepEqual(
      certificates.map(({ raw }) => raw),
      [leaf, root, stranger, intermediate].map(({ certificate }) => certificate),
    );
  });

  test('returns only the leaf of a server that sends no intermediate', async (t) => {
    const { port } = await tlsServer(t, identityOf(chain.leaf));
    assert.equal((await probe(port)).certificates.length, 1);
  });

  test('sends the server name, or none, and gets the certificate for it', async (t) => {
    const other = await makeLeaf(chain.intermediate, { identifiers: [identifier('other.example.com')] });
    const asked: string[] = [];
    const others = createSecureContext(identityOf(other, chain.intermediate));
    const { port } = await tlsServer(t, {
      ...usual(),
      SNICallback: (name, callback) => {
        asked.push(name);
        callback(null, name === 'other.example.com' ? others : undefined);
      },
    });
    const altNames: (string | undefined)[] = [];
    for (const serverName of ['www.example.com', 'other.example.com', '']) {
      altNames.push((await probe(port, { serverName })).certificates[0].subjectAltName);
    }
    assert.match(altNames[0] ?? '', /DNS:www\.example\.com/);
    assert.equal(altNames[1], 'DNS:other.example.com');
    assert.equal(altNames[2], altNames[0]);
    assert.deepEqual(asked, ['www.example.com', 'other.example.com']);
  });

  test('reports TLS 1.2, if the server has nothing newer', async (t) => {
    const { port } = await tlsServer(t, { ...usual(), maxVersion: 'TLSv1.2' });
    assert.equal((await probe(port)).tlsVersion, 'TLSv1.2');
  });

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`finds the certificate of a server that demands one from clients (${version})`, async (t) => {
      const options: TlsOptions = { ...usual(), requestCert: true, rejectUnauthorized: true };
      const { port } = await tlsServer(t, { ...options, minVersion: version, maxVersion: version });
      const { certificates, tlsVersion } = await probe(port);
      assert(certificates[0].raw.equals(chain.leaf.certificate));
      assert.equal(tlsVersion, version);
    });

    test(`notices a stapled OCSP response (${version})`, needs('openssl'), async (t) => {
      const { identity, response } = stapledChain(tempDir(t));
      const { port } = await tlsServer(t, { ...identity, maxVersion: version }, (server) =>
        server.on('OCSPRequest', (_certificate, _issuer, reply) => reply(null, response)),
      );
      assert.equal((await probe(port)).isStapled, true);
    });
  }

  test('closes its connection', async (t) => {
    const closed = Promise.withResolvers<void>();
    const { port } = await tlsServer(t, usual(), (server) =>
      server.on('connection', (socket: Socket) => socket.once('close', () => closed.resolve())),
    );
    await probe(port);
    await closed.promise;
    assert.ok(true, 'the server saw the end');
  });

  test('finds the certificate of a server with an Ed25519 or an RSA key', async (t) => {
    for (const keyType of ['ed25519', 'rsa2048'] as const) {
      const leaf = await makeLeaf(chain.intermediate, {}, keyType);
      const { port } = await tlsServer(t, identityOf(leaf, chain.intermediate));
      assert((await probe(port)).certificates[0].raw.equals(leaf.certificate), keyType);
    }
  });

  test('leaves out the certificates above the leaf whose dates are unreadable', async (t) => {
    const { leaf, intermediate, root } = chain;
    const { port } = await tlsServer(t, identityOf(leaf, withoutDate(intermediate), root));
    const { certificates } = await probe(port);
    assert.deepEqual(
      certificates.map(({ raw }) => raw),
      [leaf, root].map(({ certificate }) => certificate),
    );
  });

  test('takes at most ten certificates', async (t) => {
    const issuers: X509Issuer[] = [chain.root];
    for (let level = 12; level > 0; level -= 1) {
      const privateKey = await generatePrivateKey('ec256');
      const certificate = await issueIntermediate({
        ...{ ...dates, commonName: `Level ${level}`, serial: Buffer.from([level]), pathLength: level },
        ...{ publicKey: publicKeyOf(privateKey), issuer: issuers[0] ?? assert.fail() },
      });
      issuers.unshift({ certificate, privateKey });
    }
    const leaf = await makeLeaf(issuers[0] ?? assert.fail());
    const { port } = await tlsServer(t, identityOf(leaf, ...issuers));
    assert.equal((await probe(port)).certificates.length, 10);
  });
});

suite('a probe fails with a reason', () => {
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`if the dates of the certificate are unreadable (${maxVersion})`, async (t) => {
      const options = { ...identityOf(withoutDate(chain.leaf)), maxVersion, requestCert: true };
      const { port } = await tlsServer(t, options);
      assert.equal(await failure(probe(port)), 'the validity period of the certificate is unreadable');
    });
  }

  test('if the connection is refused', async (t) => {
    const { port, stop } = await tlsServer(t, usual());
    stop();
    assert.match(await failure(probe(port)), /refused/);
  });

  test('if the name does not exist', async () => {
    const missing: LookupAll = (name, _, callback) =>
      callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }), []);
    const said = await failure(probe(443, { host: 'www.example.com', guard: outboundGuard([], missing) }));
    assert.equal(said, 'host name not found in DNS');
  });

  test('if the address is not allowed, and says which setting allows it', async (t) => {
    const { port } = await tlsServer(t, usual());
    const rules = { setting: 'endpoint-allow', forbidden: [] };
    const said = await failure(probe(port, { guard: outboundGuard([], undefined, rules) }));
    assert.equal(
      said,
      `127.0.0.1 is a loopback address; allow it with --endpoint-allow 127.0.0.1:${port} (in vault.yaml: endpoint_allow: "127.0.0.1:${port}")`,
    );
  });

  test('if the name resolves only to addresses that are not allowed', async (t) => {
    const { port, connections } = await tlsServer(t, usual());
    const inside: LookupAll = (_name, _, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]);
    const guard = outboundGuard([], inside);
    assert.match(
      await failure(probe(port, { host: 'www.example.com', guard })),
      /^www\.example\.com resolves to 127\.0\.0\.1, a loopback address; allow it with/,
    );
    assert.equal(
      (await probe(port, { host: 'www.example.com', guard: outboundGuard(loopbackAllowed, inside) }))
        .tlsVersion,
      'TLSv1.3',
    );
    assert.equal(connections(), 1);
  });

  test('if the server speaks plain HTTP', async (t) => {
    const server = createHttpServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => server.close());
    assert.equal(
      await failure(probe((server.address() as AddressInfo).port)),
      'the server does not speak TLS on this port from the first byte',
    );
  });

  const noise: Readonly<Record<string, Buffer>> = {
    'an SSH banner': Buffer.from('SSH-2.0-OpenSSH_9.2p1\r\n'),
    zeros: Buffer.alloc(64),
  };
  for (const [what, bytes] of Object.entries(noise)) {
    test(`if the server sends ${what}`, async (t) => {
      const port = await tcpServer(t, (socket) => socket.write(bytes));
      assert.equal(
        await failure(probe(port)),
        'the server does not speak TLS on this port from the first byte',
      );
    });
  }

  test('if the server closes the connection during the handshake', async (t) => {
    const port = await tcpServer(t, (socket) => socket.once('data', () => socket.end()));
    assert.match(await failure(probe(port)), /closed|disconnected|reset/);
  });

  test('if the server has only TLS 1.1', async (t) => {
    // An alert of the level fatal: protocol_version.
    const port = await tcpServer(t, (socket) =>
      socket.once('data', () => socket.write(Buffer.from([21, 3, 1, 0, 2, 2, 70]))),
    );
    assert.equal(await failure(probe(port)), 'the server offers only TLS 1.1 or older');
  });

  test('if the server rejects the server name', async (t) => {
    const { port } = await tlsServer(t, {
      ...usual(),
      SNICallback: (_name, callback) => callback(new Error('unknown')),
    });
    assert.match(await failure(probe(port)), /^\S.*/);
    // An alert of the level fatal: unrecognized_name.
    const alerting = await tcpServer(t, (socket) =>
      socket.once('data', () => socket.write(Buffer.from([21, 3, 3, 0, 2, 2, 112]))),
    );
    assert.equal(await failure(probe(alerting)), 'the server rejected the server name');
  });

  test('if the server has no certificate for the algorithms of clients', async (t) => {
    const { port } = await tlsServer(t, {});
    assert.equal(await failure(probe(port)), 'the server rejected the TLS handshake');
  });

  test('if the chain is larger than OpenSSL reads', async (t) => {
    const many = Array.from({ length: 400 }, () => chain.intermediate);
    const { port } = await tlsServer(t, identityOf(chain.leaf, ...many));
    assert.equal(await failure(probe(port)), 'the certificate chain is too large');
  });

  test('if there is no connection within ten seconds', async () => {
    const world = new TestWorld();
    const guard = outboundGuard([], () => undefined);
    const failed = failure(probe(443, { host: 'www.example.com', guard, world }));
    await world.sleeping(1);
    world.advance(probeLimit);
    assert.equal(await failed, 'no connection within 10 s');
  });

  test('if the handshake takes longer than ten seconds, although the server goes on sending', async (t) => {
    const world = new TestWorld();
    const began = Promise.withResolvers<Socket>();
    const port = await tcpServer(t, (socket) => {
      // The head of a record that never ends.
      socket.once('data', () =>
        socket.write(Buffer.from([22, 3, 3, 0x3f, 0xff]), () => began.resolve(socket)),
      );
    });
    const failed = failure(probe(port, { world }));
    const socket = await began.promise;
    world.advance(probeLimit - 1);
    await new Promise((sent) => socket.write(Buffer.from([2]), sent));
    world.advance(1);
    assert.equal(await failed, 'no TLS handshake within 10 s');
    await closed(socket.resume());
  });

  test('if it is canceled, before the connection or while the server is silent', async (t) => {
    assert.equal(await failure(probe(443, { stop: AbortSignal.abort() })), 'the check was canceled');
    const stop = new AbortController();
    const port = await tcpServer(t, (socket) => socket.once('data', () => stop.abort()));
    assert.equal(await failure(probe(port, { stop: stop.signal })), 'the check was canceled');
  });
});

test('a server that sends without end after the handshake is not read', async (t) => {
  const portion = Buffer.alloc(65_536);
  const most = 512 * 1024 * 1024;
  const sent = Promise.withResolvers<number>();
  // In TLS 1.2, the server is the first to have finished.
  const { port } = await tlsServer(t, { ...usual(), maxVersion: 'TLSv1.2' }, (server) =>
    server.on('secureConnection', (socket) => {
      const flow = () => {
        while (!socket.destroyed && socket.bytesWritten < most && socket.write(portion));
      };
      socket.on('drain', flow).once('close', () => sent.resolve(socket.bytesWritten));
      flow();
    }),
  );
  assert.equal((await probe(port)).certificates.length, 2);
  const bytes = await sent.promise;
  assert(bytes < most, `${bytes} bytes were taken`);
});

test('many probes of one server at a time do not disturb each other', async (t) => {
  const { port, connections } = await tlsServer(t, usual());
  const found = await Promise.all(Array.from({ length: 40 }, () => probe(port)));
  assert.equal(found.filter(({ certificates }) => certificates.length === 2).length, 40);
  assert.equal(connections(), 40);
});
