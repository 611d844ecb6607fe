/** HTTPS with files of another program: reloaded when they change, and only if they are valid. */
import assert from 'node:assert/strict';
import { readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { TlsEndpoint } from '../../../src/http/tls/tls-endpoint.ts';
import { tlsFilesSource } from '../../../src/http/tls/tls-files.ts';
import { type Chain, type Issued, issue, makeChain, openssl } from '../../harness/ca/openssl-chain.ts';
import { handshake, visit } from '../../harness/http/https-client.ts';
import { twoLooks, untilSeen } from '../../harness/http/https-fixtures.ts';
import { type TestServer, testServer } from '../../harness/http/test-server.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';

type Pair = { readonly cert: string; readonly key: string };

function pairOf({ certificatePem, keyPem }: Issued): Pair {
  return { cert: certificatePem, key: keyPem };
}

async function serving(t: TestContext, pair: (dir: string) => Pair, publicRoots?: readonly string[]) {
  const dir = tempDir(t);
  const files = { certFile: join(dir, 'tls.crt'), keyFile: join(dir, 'tls.key') };
  const write = ({ cert, key }: Partial<Pair>) => {
    for (const [path, content] of [
      [files.certFile, cert],
      [files.keyFile, key],
    ] as const) {
      if (content === undefined) continue;
      writeFileSync(`${path}.new`, content);
      renameSync(`${path}.new`, path);
    }
  };
  write(pair(dir));
  const server = await testServer(t, { tls: (vault) => tlsFilesSource(vault, files, publicRoots) });
  const serial = async () => (await visit(`${server.url}/api/v1/health`)).leaf.serialNumber;
  return { dir, files, write, server, serial };
}

/** No longer accepted. */
function issueShort(dir: string): Pair {
  const noCa = ['-addext', 'basicConstraints=critical,CA:FALSE'];
  const files = ['-keyout', 'short.key', '-out', 'short.crt'];
  openssl(
    dir,
    'req',
    '-x509',
    '-newkey',
    'rsa:1024',
    '-nodes',
    '-days',
    '9',
    '-subj',
    '/CN=short',
    ...noCa,
    ...files,
  );
  const [cert = '', key = ''] = ['short.crt', 'short.key'].map((name) =>
    readFileSync(join(dir, name), 'utf8'),
  );
  return { cert, key };
}

function complaints({ log }: TestServer): string[] {
  return log.lines.filter((line) => line.includes('"level":"error"'));
}

suite('files for HTTPS', needs('openssl'), () => {
  test('are served with a complete chain, even if their intermediates are in the wrong order', async (t) => {
    let chain: Chain | undefined;
    const { server } = await serving(t, (dir) => {
      chain = makeChain(dir, { names: 'IP:127.0.0.1,DNS:vault.example.test' });
      const [one, two] = chain.intermediates;
      // The root last in the file is not sent, and intermediates in the wrong order are put right.
      const certs = [chain.leaf, one, two, chain.root].map(({ certificatePem }) => certificatePem);
      return { cert: certs.join(''), key: chain.leaf.keyPem };
    });
    assert(chain);
    const trusting = await visit(`${server.url}/api/v1/health`, {
      ca: chain.root.certificatePem,
      servername: 'vault.example.test',
    });
    assert.equal(trusting.status, 200);
  });

  test('are reloaded after they were replaced, also one after the other', async (t) => {
    const { dir, write, server, serial } = await serving(t, (at) => pairOf(issue(at, 'first')));
    for (const name of ['second', 'third', 'fourth']) {
      const before = await serial();
      const { cert, key } = pairOf(issue(dir, name));
      write({ cert });
      // Between the two writes the server may look: the pair does not fit then.
      if (name === 'third') {
        await server.world.sleeping(1);
        server.world.advance(1000);
        await server.world.sleeping(1);
      }
      write({ key });
      await untilSeen(server, async () => ((await serial()) === before ? undefined : true));
    }
    assert.deepEqual(complaints(server), []);
  });

  test('are reloaded while the database cannot be read, which is logged once', async (t) => {
    const { dir, write, server, serial } = await serving(t, (at) => pairOf(issue(at, 'first')));
    const before = await serial();
    t.mock.method(server.vault.db, 'generation', async () => {
      throw new Error('no database');
    });
    write(pairOf(issue(dir, 'second')));
    await untilSeen(server, async () => ((await serial()) === before ? undefined : true));
    await twoLooks(server);
    const [first = '', ...others] = complaints(server).filter((line) => line.includes('CAs of client'));
    assert.match(first, /failed to read the CAs of client certificates; announcing the current ones/);
    assert.deepEqual(others, []);
  });

  for (const keyAlgorithm of ['rsa2048', 'ec384', 'ed25519'] as const) {
    test(`are served with a key of the type ${keyAlgorithm}, by TLS 1.2 and 1.3`, async (t) => {
      const { server } = await serving(t, (dir) => pairOf(issue(dir, 'pair', { keyAlgorithm })));
      for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
        const socket = await handshake(server.url, { maxVersion });
        assert(socket instanceof TLSSocket, String(socket));
        assert.equal(socket.getProtocol(), maxVersion);
        socket.destroy();
      }
    });
  }

  test('are reloaded after they were replaced by symbolic links', async (t) => {
    const { dir, files, server, serial } = await serving(t, (at) => pairOf(issue(at, 'first')));
    const before = await serial();
    const next = issue(dir, 'next');
    for (const [path, target] of [
      [files.certFile, next.certificatePath],
      [files.keyFile, next.keyPath],
    ] as const) {
      rmSync(path);
      symlinkSync(target, path);
    }
    await untilSeen(server, async () => ((await serial()) === before ? undefined : true));
  });

  const wrong: Readonly<Record<string, [pair: (dir: string) => Partial<Pair>, complaint: RegExp]>> = {
    'a key of another certificate': [
      (dir) => ({ key: issue(dir, 'other').keyPem }),
      /the private key .*does not belong|does not match any of the certificates|no certificate .*key/i,
    ],
    'half a certificate': [(dir) => ({ cert: issue(dir, 'half').certificatePem.slice(0, 200) }), /tls\.crt/],
    'an empty file': [() => ({ cert: '' }), /tls\.crt is empty/],
    'text that is not PEM': [() => ({ key: 'hello' }), /tls\.key contains neither/],
    'a key that is too short': [issueShort, /unusable for HTTPS: TLS error: ee key too small/],
  };
  for (const [what, [pair, complaint]] of Object.entries(wrong)) {
    test(`replaced by ${what} are not loaded: the old pair stays, and the error is logged once`, async (t) => {
      const { dir, write, server, serial } = await serving(t, (at) => pairOf(issue(at, 'first')));
      const before = await serial();
      write(pair(dir));
      await twoLooks(server);
      await twoLooks(server);
      assert.equal(await serial(), before);
      assert.equal(complaints(server).length, 1);
      assert.match(complaints(server)[0] ?? '', complaint);
      assert.doesNotMatch(server.log.lines.join('\n'), /PRIVATE KEY-----/);
      write(pairOf(issue(dir, 'mended')));
      await untilSeen(server, async () => ((await serial()) === before ? undefined : true));
    });
  }

  test('stay served after the key file is removed, and the error is logged once', async (t) => {
    const { files, server, serial, dir, write } = await serving(t, (at) => pairOf(issue(at, 'first')));
    const before = await serial();
    rmSync(files.keyFile);
    await twoLooks(server);
    await twoLooks(server);
    assert.equal(await serial(), before);
    assert.equal(complaints(server).length, 1);
    assert.match(complaints(server)[0] ?? '', /cannot read the HTTPS file .*tls\.key/);
    write(pairOf(issue(dir, 'back')));
    await untilSeen(server, async () => ((await serial()) === before ? undefined : true));
  });

  test('fail the start with the reason if they are missing or invalid', async (t) => {
    const { vault } = await testVault(t);
    const dir = tempDir(t);
    const one = issue(dir, 'one');
    const other = issue(dir, 'other');
    const refused: [certFile: string, keyFile: string, message: RegExp][] = [
      [
        join(dir, 'nothing.crt'),
        one.keyPath,
        /cannot read the HTTPS file .*nothing\.crt: no such file or directory/,
      ],
      [one.certificatePath, other.keyPath, /invalid HTTPS certificate files/],
      [one.keyPath, one.keyPath, /invalid HTTPS certificate files/],
    ];
    for (const [certFile, keyFile, message] of refused) {
      await assert.rejects(TlsEndpoint.open(vault, tlsFilesSource(vault, { certFile, keyFile })), (error) => {
        assert(error instanceof OperatorError);
        assert.match(error.message, message);
        assert(error.hint !== undefined);
        return true;
      });
    }
  });

  test('are served even if openssl created them as a CA by default', async (t) => {
    const { server } = await serving(t, (dir) => {
      const names = ['-subj', '/CN=vault', '-addext', 'subjectAltName=IP:127.0.0.1'];
      const files = ['-keyout', 'own.key', '-out', 'own.crt'];
      openssl(dir, 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '9', ...names, ...files);
      const [cert = '', key = ''] = ['own.crt', 'own.key'].map((name) =>
        readFileSync(join(dir, name), 'utf8'),
      );
      return { cert, key };
    });
    const { status, leaf } = await visit(`${server.url}/api/v1/health`);
    assert.deepEqual([status, leaf.ca], [200, true]);
  });

  test('are served with a warning if they have expired', async (t) => {
    const { server } = await serving(t, (dir) =>
      pairOf(issue(dir, 'old', { notBefore: Date.UTC(2020, 0), notAfter: Date.UTC(2021, 0) })),
    );
    assert.equal((await visit(`${server.url}/api/v1/health`)).status, 200);
    assert.match(server.log.lines.join('\n'), /"level":"warn".*the HTTPS certificate has expired/);
  });
});

suite('Strict-Transport-Security', needs('openssl'), () => {
  const paths = ['/api/v1/health', '/nothing', '/client/ca.crt'];

  test('is sent with every response if the chain leads to a public root', async (t) => {
    const dir = tempDir(t);
    const chain = makeChain(dir);
    const pair = { cert: chain.fullchainPem, key: chain.leaf.keyPem };
    const { server } = await serving(t, () => pair, [chain.root.certificatePem]);
    for (const path of paths) {
      const { headers } = await visit(server.url + path);
      assert.equal(headers['strict-transport-security'], 'max-age=31536000', path);
    }
  });

  test('is not sent if the certificate is not publicly trusted', async (t) => {
    const dir = tempDir(t);
    const chain = makeChain(dir);
    const other = makeChain(dir, { label: 'Other' });
    const pair = { cert: chain.fullchainPem, key: chain.leaf.keyPem };
    const { server } = await serving(t, () => pair, [other.root.certificatePem]);
    for (const path of paths) {
      const { headers } = await visit(server.url + path);
      assert.equal(headers['strict-transport-security'], undefined, path);
    }
  });
});
