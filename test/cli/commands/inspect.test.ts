/** `vault inspect`: what files and TLS servers hold, what is wrong with them, and that hostile ones do no harm. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import type { Inspection } from '../../../src/crypto/bundles/inspection.ts';
import { type Chain, issue, makeChain, openssl } from '../../harness/ca/openssl-chain.ts';
import { pkcs12Bomb } from '../../harness/import-bombs.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { freePort } from '../../harness/processes/port.ts';
import { vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

type Printed = Inspection & { source: string; tls: { protocol: string; cipher: string } | null };

type Scene = {
  readonly dir: string;
  readonly chain: Chain;
  readonly write: (name: string, content: string | Buffer) => string;
  /** The output for people. No key material may be in it, and no vault may come of it. */
  readonly text: (args: readonly string[], input?: string | Buffer) => Promise<string>;
  readonly json: (args: readonly string[], input?: string | Buffer) => Promise<Printed>;
  readonly refused: (args: readonly string[], message: RegExp, code?: 1 | 2) => Promise<void>;
};

function scene(t: TestContext): Scene {
  const dir = tempDir(t);
  const chain = makeChain(dir, {});
  const secrets = chain.leaf.keyPem.split('\n').filter((line) => line.length > 20 && !line.startsWith('-'));
  const data = join(dir, 'no-vault');
  const run = async (args: readonly string[], input?: string | Buffer) => {
    const environment = { VAULT_DATA_DIR: data };
    const launch = { environment, ...(input !== undefined && { input }) };
    const outcome = await vault(['inspect', ...args], launch);
    const said = outcome.stdout + outcome.stderr;
    for (const secret of secrets) assert.ok(!said.includes(secret), said);
    assert.doesNotMatch(said, /\n\s+at /);
    assert.equal(existsSync(data), false);
    return outcome;
  };
  const text = async (args: readonly string[], input?: string | Buffer) => {
    const { code, stdout, stderr } = await run(args, input);
    assert.deepEqual([code, stderr], [0, '']);
    return stdout;
  };
  return {
    ...{ dir, chain, text },
    write: (name, content) => {
      const path = join(dir, name);
      writeFileSync(path, content);
      return path;
    },
    json: async (args, input) => JSON.parse(await text([...args, '--json'], input)) as Printed,
    refused: async (args, message, code = 1) => {
      const outcome = await run(args);
      assert.deepEqual([outcome.code, outcome.stdout], [code, ''], outcome.stderr);
      assert.match(outcome.stderr, message);
    },
  };
}

const kinds = ({ objects }: Printed) => objects.map(({ kind }) => kind);

test(
  'inspect prints every object of a chain with its key, the order, the key match and the root',
  needs('openssl'),
  async (t) => {
    const { chain, write, json, text } = scene(t);
    const { leaf, root, fullchainPem } = chain;
    const path = write('all.pem', fullchainPem + root.certificatePem + leaf.keyPem);
    const found = await json([path]);
    assert.deepEqual(kinds(found), [...Array<string>(4).fill('certificate'), 'private_key']);
    const [first] = found.objects;
    const x509 = new X509Certificate(leaf.certificatePem);
    assert.deepEqual(
      [first?.fingerprint_sha256, first?.serial, first?.is_ca],
      [x509.fingerprint256.replaceAll(':', '').toLowerCase(), x509.serialNumber, false],
    );
    assert.deepEqual(first?.domains, ['www.example.com', 'example.com']);
    assert.equal(found.objects.at(-1)?.public_key_pin, first?.public_key_pin);
    assert.deepEqual(found.chain?.subjects, [
      ...['CN=www.example.com', 'CN=Test Intermediate 2,O=Test', 'CN=Test Intermediate 1,O=Test'],
      'CN=Test Root,O=Test',
    ]);
    assert.deepEqual(
      [found.chain?.missing, found.chain?.verified_by, found.chain?.publicly_trusted],
      [null, 'CN=Test Root,O=Test', false],
    );
    assert.deepEqual([found.key_matches, found.problems, found.tls], [true, [], null]);
    const shown = await text(['-'], readFileSync(path));
    assert.match(shown, /^standard input\n\nCertificate 1\n {2}Subject +CN=www\.example\.com\n/);
    assert.match(shown, /^ {2}Valid until +\S+Z \(in \d+ days\)$/m);
    assert.match(shown, /^Verified by +CN=Test Root,O=Test \(not publicly trusted\)$/m);
    assert.match(shown, /^Key matches +yes$/m);
  },
);

test(
  'wrong order, missing intermediates, unrelated certificates, expiry and a wrong key are reported',
  needs('openssl'),
  async (t) => {
    const { dir, chain, json, text } = scene(t);
    const { leaf, root, intermediates } = chain;
    const pem = (...list: { certificatePem: string }[]) =>
      list.map(({ certificatePem }) => certificatePem).join('');
    const problems = async (input: string) => (await json(['-'], input)).problems;
    assert.deepEqual(await problems(pem(root, ...intermediates, leaf)), [
      'The certificates are not in the order leaf, issuer, its issuer.',
    ]);
    const [alone] = await problems(pem(leaf));
    assert.match(alone ?? '', /^The intermediate certificate of CN=www\.example\.com is missing: /);
    assert.match(
      await text(['-'], pem(leaf)),
      /^Verified by +nothing: the certificate of CN=Test Inter.* is missing$/m,
    );
    const past = issue(dir, 'past', {
      ...{ issuer: intermediates[1], names: 'DNS:a.test', role: 'leaf' },
      ...{ notBefore: Date.UTC(2025, 0, 1), notAfter: Date.UTC(2025, 1, 1) },
    });
    assert.deepEqual(await problems(pem(past, ...intermediates, root, leaf) + leaf.keyPem), [
      'The certificates are not in the order leaf, issuer, its issuer.',
      'Not part of the chain: CN=past.',
    ]);
    assert.match(
      (await problems(pem(past, ...intermediates, root))).join(),
      /^CN=past expired at 2025-02-01/,
    );
    const other = issue(dir, 'other');
    assert.deepEqual((await json(['-'], chain.fullchainPem + other.keyPem)).key_matches, false);
    assert.match(
      (await problems(chain.fullchainPem + other.keyPem))[0] ?? '',
      /^The private ec256 key matches none of the certificates/,
    );
  },
);

test(
  'requests, revocation lists, keys, DER, PKCS#7 and PKCS#12 are understood',
  needs('openssl'),
  async (t) => {
    const { dir, chain, write, json, text, refused } = scene(t);
    const { leaf, root, fullchainPath, fullchainPem } = chain;
    const at = (name: string) => join(dir, name);
    openssl(
      dir,
      ...['req', '-new', '-key', leaf.keyPath, '-subj', '/CN=r.test', '-out', at('r.csr')],
      ...['-addext', 'subjectAltName=DNS:r.test,DNS:s.test'],
    );
    const request = await json(['-'], readFileSync(at('r.csr'), 'utf8') + leaf.keyPem);
    assert.deepEqual(
      [
        kinds(request),
        request.objects[0]?.domains,
        request.objects[0]?.is_signature_valid,
        request.key_matches,
      ],
      [['certificate_request', 'private_key'], ['r.test', 's.test'], true, true],
    );
    openssl(dir, 'req', '-in', at('r.csr'), '-outform', 'DER', '-out', at('r.der'));
    assert.match(await text([at('r.der')]), /^Certificate signing request\n {2}Subject +CN=r\.test\n/m);

    write('index.txt', '');
    write('ca.cnf', `[ca]\ndefault_ca=d\n[d]\ndatabase=${at('index.txt')}\ndefault_md=sha256\n`);
    openssl(
      dir,
      ...['ca', '-config', at('ca.cnf'), '-gencrl', '-crldays', '7', '-out', at('ca.crl')],
      ...['-cert', root.certificatePath, '-keyfile', root.keyPath],
    );
    const [list] = (await json([at('ca.crl')])).objects;
    assert.deepEqual([list?.kind, list?.revoked], ['revocation_list', 0]);
    assert.match(String(list?.next_update), /Z$/);

    openssl(dir, 'x509', '-in', leaf.certificatePath, '-outform', 'DER', '-out', at('leaf.der'));
    assert.deepEqual(kinds(await json([at('leaf.der')])), ['certificate']);
    openssl(dir, 'pkey', '-in', leaf.keyPath, '-outform', 'DER', '-out', at('key.der'));
    assert.deepEqual(kinds(await json([at('key.der')])), ['private_key']);
    openssl(dir, 'pkey', '-in', leaf.keyPath, '-aes256', '-passout', 'pass:secret', '-out', at('locked.key'));
    assert.deepEqual(kinds(await json([at('locked.key')])), ['encrypted_private_key']);
    openssl(dir, 'crl2pkcs7', '-nocrl', '-certfile', fullchainPath, '-out', at('chain.p7b'));
    assert.equal((await json([at('chain.p7b')])).chain?.subjects.length, 3);

    const password = write('password', 'correct horse\n');
    openssl(
      dir,
      ...['pkcs12', '-export', '-in', fullchainPath, '-inkey', leaf.keyPath, '-out', at('a.p12')],
      ...['-passout', 'pass:correct horse'],
    );
    const bundle = await json([at('a.p12'), '--password-file', password]);
    assert.deepEqual([bundle.key_matches, bundle.chain?.subjects.length], [true, 3]);
    await refused([at('a.p12')], /protected by a password/);
    await refused(
      [at('a.p12'), '--password-file', write('wrong', 'x')],
      /password of the PKCS#12 file .* is wrong/,
    );
    assert.deepEqual(
      kinds(
        await json(
          ['-'],
          `${fullchainPem}-----BEGIN DH PARAMETERS-----\nMAYCAQACAQI=\n-----END DH PARAMETERS-----\n`,
        ),
      ).at(-1),
      'other',
    );
  },
);

test('control characters in the labels of damaged PEM blocks are not printed', async (t) => {
  const { write, refused } = scene(t);
  const label = `\u001b]0;owned\u0007\u009b2J\u202e${'A'.repeat(40)} KEY`;
  const begin = `-----BEGIN ${label}-----`;
  const files = {
    'no-end.pem': `${begin}\nAAAA\n`,
    'no-base64.pem': `${begin}\n!!\n-----END ${label}-----\n`,
    'no-begin.pem': `-----END ${label}-----\n`,
    'no-request.pem':
      '-----BEGIN \u009b2J CERTIFICATE REQUEST-----\nAAAA\n-----END \u009b2J CERTIFICATE REQUEST-----\n',
  };
  for (const [name, content] of Object.entries(files)) {
    await refused([write(name, content)], /^vault: \S+ is damaged: [ -~…]+\n[ -~]+\n$/);
  }
});

test('damaged, hostile and oversized files are rejected with a message', needs('openssl'), async (t) => {
  const { chain, dir, write, refused } = scene(t);
  const password = write('password', 'secret');
  const der = Buffer.from(chain.leaf.certificatePem.replace(/-----.*-----|\n/g, ''), 'base64');
  const pem = (label: string, content: Buffer) =>
    `-----BEGIN ${label}-----\n${content.toString('base64')}\n-----END ${label}-----\n`;
  await Promise.all([
    refused(
      [write('bomb.p12', pkcs12Bomb('secret', 2 ** 31 - 1)), '--password-file', password],
      /takes more than 5 seconds/,
    ),
    refused([write('large', Buffer.alloc(4 * 1024 * 1024 + 1))], /larger than 4 MiB/),
    refused([write('empty', '')], /is no certificate, certificate request, revocation list or key/),
    refused(
      [write('half.pem', pem('CERTIFICATE', der.subarray(0, 200)))],
      /is damaged: the content of a CERTIFICATE block/,
    ),
    refused(
      [write('many.pem', pem('PUBLIC KEY', Buffer.of(48)).repeat(1001))],
      /holds more than 1000 objects/,
    ),
    refused(
      [write('deep.der', Buffer.alloc(500_000, Buffer.of(0x30, 0x80)))],
      /is no certificate|too much memory/,
    ),
    refused([join(dir, 'absent')], /cannot read \S+absent: no such file/),
    refused([dir], /is a directory/),
    refused([], /FILE\|-\|HOST:PORT is missing/, 2),
    refused(['-', '--password-file', '-'], /only one of them can read standard input/, 2),
  ]);
});

test(
  'inspect of a TLS server prints its chain, its TLS version and a problem when the name does not match',
  needs('openssl'),
  async (t) => {
    const { chain, dir, json, text } = scene(t);
    const { root, intermediates, fullchainPem } = chain;
    const local = issue(dir, 'local', { issuer: intermediates[1], names: 'DNS:localhost', role: 'leaf' });
    const cert =
      local.certificatePem +
      intermediates
        .map(({ certificatePem }) => certificatePem)
        .toReversed()
        .join('');
    assert.ok(fullchainPem.length > 0 && root.certificatePem.length > 0);
    const server = createTlsServer({ cert, key: local.keyPem }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const found = await json([`localhost:${port}`]);
    assert.equal(found.tls?.protocol, 'TLSv1.3');
    assert.deepEqual(found.chain?.subjects, [
      ...['CN=local', 'CN=Test Intermediate 2,O=Test', 'CN=Test Intermediate 1,O=Test'],
    ]);
    assert.deepEqual([found.chain?.missing, found.problems], ['CN=Test Root,O=Test', []]);
    assert.match(await text([`127.0.0.1:${port}`]), /^Problem: CN=local is not valid for 127\.0\.0\.1\.$/m);
  },
);

test(
  'a refused connection, a server without TLS and a silent server are reported',
  needs('openssl'),
  async (t) => {
    const { refused } = scene(t);
    const servers = await Promise.all(
      [
        createTcpServer((socket) => socket.end('220 mail.example.com ESMTP\r\n')),
        createTcpServer((socket) => socket.on('error', () => socket.destroy())),
      ].map(async (server) => {
        server.listen(0, '127.0.0.1');
        await once(server, 'listening');
        t.after(() => server.close());
        return (server.address() as AddressInfo).port;
      }),
    );
    await Promise.all([
      refused(
        [`127.0.0.1:${await freePort()}`],
        /cannot inspect 127\.0\.0\.1:\d+: connection refused\n {2}Check /,
      ),
      refused([`127.0.0.1:${servers[0]}`], /cannot inspect 127\.0\.0\.1:\d+: TLS error: \S/),
      refused([`127.0.0.1:${servers[1]}`], /no TLS handshake within 10 seconds/),
      refused(['www.example.test:99999'], /cannot read www\.example\.test:99999/),
    ]);
  },
);
