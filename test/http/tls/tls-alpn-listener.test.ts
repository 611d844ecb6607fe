/** tls-alpn-01 as a CA looks at it: real TLS connections, those that are answered and those that must not be. */
import assert from 'node:assert/strict';
import { hash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { startTlsAlpnListener, type TlsAlpnLimits } from '../../../src/http/tls/tls-alpn-listener.ts';
import { putChallenge } from '../../harness/http/acme-fixtures.ts';
import { readToEnd } from '../../harness/http/raw.ts';
import { helloOf } from '../../harness/http/tls-hello.ts';
import { testVault } from '../../harness/test-vault.ts';

const keyAuthorization =
  'evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr_oA.nP1qzpXGymHBrUEepNY9HCsQk7K8KhOypzEt62jcerQ';
const challenge = {
  type: 'tls-alpn-01',
  identifier: 'www.example.test',
  key_authorization: keyAuthorization,
};

async function prepared(t: TestContext, limits?: TlsAlpnLimits) {
  const opened = await testVault(t);
  await putChallenge(opened.vault, challenge);
  const listener = await startTlsAlpnListener(opened.vault, { host: '127.0.0.1', port: 0 }, limits);
  t.after(() => listener.stop());
  const port = Number(listener.address.split(':')[1]);
  return { ...opened, listener, port };
}

/** What a CA sees: the certificate, or how the handshake failed. The server must close the connection itself. */
async function look(
  port: number,
  options: ConnectionOptions = {},
): Promise<{ certificate?: X509Certificate; protocol?: TLSSocket['alpnProtocol']; failed?: string }> {
  const socket = connect({
    port,
    host: '127.0.0.1',
    servername: challenge.identifier,
    ALPNProtocols: ['acme-tls/1'],
    rejectUnauthorized: false,
    ...options,
  });
  let seen: Awaited<ReturnType<typeof look>> = {};
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  socket
    .once('close', () => resolve())
    .on('secureConnect', () => {
      seen = {
        certificate: new X509Certificate(socket.getPeerCertificate(true).raw),
        protocol: socket.alpnProtocol,
      };
    })
    .on('error', (error: NodeJS.ErrnoException) => {
      seen = { ...seen, failed: error.code ?? error.message };
    })
    .resume();
  await closed;
  return seen;
}

/** The DER of the critical acmeIdentifier extension with this digest (RFC 8737 §3). */
function acmeIdentifier(authorization: string): Buffer {
  const id = Buffer.from('06082b0601050507011f', 'hex');
  const critical = Buffer.from('0101ff', 'hex');
  return Buffer.concat([
    id,
    critical,
    Buffer.from('04220420', 'hex'),
    hash('sha256', authorization, 'buffer'),
  ]);
}

suite('a tls-alpn-01 challenge', () => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`is answered by ${version} with a certificate for the name and the digest of the key authorization`, async (t) => {
      const { port } = await prepared(t);
      const { certificate, protocol, failed } = await look(port, {
        minVersion: version,
        maxVersion: version,
      });
      assert.equal(failed, undefined);
      assert(certificate);
      assert.equal(protocol, 'acme-tls/1');
      assert.equal(certificate.subjectAltName, 'DNS:www.example.test');
      assert(certificate.raw.includes(acmeIdentifier(keyAuthorization)));
      assert(certificate.verify(certificate.publicKey), 'it is self-signed');
    });
  }

  test('for an IP address is found by its reverse name', async (t) => {
    const { vault, port } = await prepared(t);
    const reverse = {
      '192.0.2.7': '7.2.0.192.in-addr.arpa',
      '2001:db8::7': '7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa',
    };
    for (const [identifier, servername] of Object.entries(reverse)) {
      await putChallenge(vault, { ...challenge, identifier, key_authorization: `${identifier}.print` });
      const { certificate } = await look(port, { servername });
      assert.match(certificate?.subjectAltName ?? '', /^IP Address:[0-9A-F.:]+$/i);
      assert(certificate?.raw.includes(acmeIdentifier(`${identifier}.print`)));
    }
  });

  test('stored by another process is answered, and the newest one counts', async (t) => {
    const { dataDir, world, port } = await prepared(t);
    await look(port);
    const other = await testVault(t, { dataDir, world });
    await putChallenge(other.vault, { ...challenge, key_authorization: 'newer.print' });
    const { certificate } = await look(port);
    assert(certificate?.raw.includes(acmeIdentifier('newer.print')));
  });

  test('is answered with one certificate for 20 concurrent connections', async (t) => {
    const { port } = await prepared(t);
    const seen = await Promise.all(Array.from({ length: 20 }, () => look(port)));
    const serials = new Set(seen.map(({ certificate }) => certificate?.serialNumber));
    assert.equal(serials.size, 1);
    assert(!serials.has(undefined));
  });
});

suite('a handshake is refused', () => {
  const refused: Readonly<Record<string, [options: ConnectionOptions, failed: RegExp]>> = {
    'for a name without a challenge': [{ servername: 'other.example.test' }, /ALERT_HANDSHAKE_FAILURE/],
    'for a wildcard of a name with a challenge': [
      { servername: '*.www.example.test' },
      /ALERT_HANDSHAKE_FAILURE/,
    ],
    'without a server name': [{ servername: '' }, /ALERT_HANDSHAKE_FAILURE/],
    'without a protocol': [{ ALPNProtocols: [] }, /NO_APPLICATION_PROTOCOL/],
    'with other protocols': [{ ALPNProtocols: ['h2', 'http/1.1'] }, /NO_APPLICATION_PROTOCOL/],
    'with a protocol of a similar name': [{ ALPNProtocols: ['acme-tls/11'] }, /NO_APPLICATION_PROTOCOL/],
    'by TLS 1.1': [
      { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
      /PROTOCOL_VERSION|HANDSHAKE_FAILURE/,
    ],
  };
  for (const [what, [options, failed]] of Object.entries(refused)) {
    test(what, async (t) => {
      const { port, log } = await prepared(t);
      const seen = await look(port, options);
      assert.match(seen.failed ?? 'it succeeded', failed);
      assert.equal(seen.certificate, undefined);
      assert((await look(port)).certificate, 'and the listener goes on');
      assert.doesNotMatch(log.lines.join('\n'), /"level":"(warn|error)"/);
    });
  }

  test('when the database fails, with an error in the log', async (t) => {
    const { vault, port, log } = await prepared(t);
    const mock = t.mock.method(vault.db.reader, 'selectFrom', () => {
      throw new Error('no database');
    });
    assert.match((await look(port)).failed ?? '', /HANDSHAKE_FAILURE/);
    assert.match(log.lines.join('\n'), /"level":"error","err":"Error: no database"/);
    mock.mock.restore();
    assert((await look(port)).certificate);
  });
});

suite('the listener for tls-alpn-01', () => {
  async function tcp(port: number): Promise<Socket> {
    const socket = connectTcp(port, '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  }

  test('closes connections without TLS, and survives aborted ones', async (t) => {
    const { port, log } = await prepared(t);
    for (const bytes of ['GET / HTTP/1.1\r\n\r\n', '\x16\x03\x01\x00\x04\x02\0\0\0', '\xff'.repeat(50_000)]) {
      const socket = await tcp(port);
      socket.write(bytes, 'latin1');
      assert.equal(await readToEnd(socket), '');
    }
    for (const bytes of ['', '\x16', '\x16\x03\x01\x02\0\x01\0\x01\xfc']) {
      const socket = await tcp(port);
      if (bytes !== '') socket.write(bytes, 'latin1');
      socket.resetAndDestroy();
    }
    const cut = connect({
      port,
      host: '127.0.0.1',
      servername: challenge.identifier,
      ALPNProtocols: ['acme-tls/1'],
    });
    cut.on('error', () => {
      // It is cut off in the middle of its handshake.
    });
    await once(cut, 'connect');
    cut.destroy();
    assert((await look(port)).certificate);
    assert.doesNotMatch(log.lines.join('\n'), /"level":"(warn|error)"/);
  });

  test('waits neither for a first message nor for the rest of a handshake longer than its limit', async (t) => {
    const { port } = await prepared(t, { handshakeMs: 1000, connections: 10 });
    const silent = await tcp(port);
    assert.equal(await readToEnd(silent), '');
    const hello = await helloOf({ ALPNProtocols: ['acme-tls/1'] });
    let answer = '';
    // Where the machine pauses for as long as the limit, the vault has no time to answer.
    while (answer === '') {
      const halting = await tcp(port);
      halting.write(hello);
      answer = await readToEnd(halting);
    }
  });

  test('takes no more connections than its limit', async (t) => {
    const { port } = await prepared(t, { handshakeMs: 10_000, connections: 1 });
    const first = await tcp(port);
    const second = await tcp(port);
    assert.equal(await readToEnd(second), '');
    first.destroy();
    await once(first, 'close');
    let seen = await look(port);
    // The server notices in its own time that the first has gone.
    while (seen.certificate === undefined) seen = await look(port);
  });

  test('stops without waiting for silent connections', async (t) => {
    const { listener, port } = await prepared(t);
    const socket = await tcp(port);
    const ended = readToEnd(socket);
    await listener.stop();
    assert.equal(await ended, '');
    await assert.rejects(tcp(port), { code: 'ECONNREFUSED' });
  });

  test('fails with a hint about --acme-tls-listen if its address is unavailable', async (t) => {
    const { vault, port } = await prepared(t);
    for (const [host, taken] of [
      ['127.0.0.1', port],
      ['192.0.2.1', 0],
    ] as const) {
      await assert.rejects(startTlsAlpnListener(vault, { host, port: taken }), (error) => {
        assert(error instanceof OperatorError);
        assert.match(error.hint ?? '', / --acme-tls-listen/);
        return true;
      });
    }
  });
});
