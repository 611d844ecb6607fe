/** tls-alpn-01 as the vault validates it, against servers with the right certificate, a wrong one, or no TLS. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { suite, type TestContext, test } from 'node:test';
import type { TlsOptions } from 'node:tls';
import { octetString } from '../../../../src/crypto/der.ts';
import { generatePrivateKey, publicKeyOf } from '../../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../../src/crypto/pem.ts';
import { validationCertificate } from '../../../../src/crypto/x509/acme-validation-certificate.ts';
import { generalName, nameOf, sign, x509Library } from '../../../../src/crypto/x509/x509-library.ts';
import { reverseName } from '../../../../src/domain/acme-server/validation/tls-validation.ts';
import {
  keyAuthorization,
  rawServer,
  tlsServer,
  validator,
} from '../../../harness/acme/validation-fixtures.ts';
import { identifier } from '../../../harness/ca/private-chain.ts';

const records = { 'A www.example.test': ['127.0.0.1'], 'AAAA www.example.test': ['::1'] };
const type = 'tls-alpn-01';
const acmeTls: TlsOptions = { ALPNProtocols: ['acme-tls/1'] };
const terms = { serial: Buffer.alloc(16, 1), notBefore: 0, notAfter: Date.parse('2027-01-01T00:00:00Z') };

async function prepared(t: TestContext, options: TlsOptions) {
  const checked = await validator(t, records);
  const server = await tlsServer(t, options);
  checked.ports.tls = server.port;
  return { ...checked, server };
}

async function rightFor(name: string, authorization = keyAuthorization): Promise<TlsOptions> {
  const { certificate, privateKey } = await validationCertificate(identifier(name), authorization, terms);
  return { ...acmeTls, cert: certificate, key: privateKey.expose() };
}

type Oddity = {
  readonly names?: readonly string[];
  readonly isCritical?: boolean;
  readonly count?: number;
  readonly digest?: Buffer;
  readonly isIssued?: boolean;
};

/** A certificate like the right one, but for one thing. */
async function odd({
  names = ['www.example.test'],
  isCritical = true,
  count = 1,
  digest = hash('sha256', keyAuthorization, 'buffer'),
  isIssued = false,
}: Oddity): Promise<TlsOptions> {
  const x509 = await x509Library();
  const key = await generatePrivateKey('ec256');
  const subject = nameOf(x509, 'odd');
  const extension = new x509.Extension('1.3.6.1.5.5.7.1.31', isCritical, octetString(digest));
  const extensions = [
    ...(names.length > 0
      ? [new x509.SubjectAlternativeNameExtension(names.map((name) => generalName(identifier(name))))]
      : []),
    ...new Array(count).fill(extension),
  ];
  const draft = { ...terms, subject, publicKey: publicKeyOf(key), extensions };
  const signer = isIssued ? await generatePrivateKey('ec256') : key;
  const certificate = await sign(x509, draft, isIssued ? nameOf(x509, 'a CA') : subject, signer);
  return {
    ...acmeTls,
    cert: encodePem('CERTIFICATE', certificate),
    key: encodePem('PRIVATE KEY', key.expose()),
  };
}

suite('tls-alpn-01 validation with the challenge certificate', () => {
  test('succeeds for a name and sends it as SNI', async (t) => {
    const { validate, server } = await prepared(t, await rightFor('www.example.test'));
    assert.equal(await validate({ type }), undefined);
    assert.deepEqual(server.names, ['www.example.test']);
  });

  test('succeeds for an IP address and sends its reverse name as SNI', async (t) => {
    const { validate, server } = await prepared(t, await rightFor('127.0.0.1'));
    assert.equal(await validate({ type, identifier: '127.0.0.1' }), undefined);
    assert.deepEqual(server.names, ['1.0.0.127.in-addr.arpa']);
    assert.equal(
      reverseName('2001:db8::1'),
      '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa',
    );
  });
});

suite('tls-alpn-01 validation with another certificate', () => {
  const cases: readonly [what: string, certificate: () => Promise<TlsOptions>, why: RegExp][] = [
    [
      'for another name',
      () => rightFor('other.example.test'),
      /has the names DNS:other\.example\.test instead of www\.example\.test alone$/,
    ],
    [
      'for an additional name',
      () => odd({ names: ['www.example.test', 'b.test'] }),
      /has the names DNS:www\.example\.test, DNS:b\.test instead/,
    ],
    ['without a name', () => odd({ names: [] }), /has no names instead of/],
    [
      'for another key authorization',
      () => rightFor('www.example.test', 'x'),
      /is for another key authorization$/,
    ],
    [
      'with a digest that is too short',
      () => odd({ digest: Buffer.alloc(31) }),
      /is for another key authorization$/,
    ],
    ['whose extension is not critical', () => odd({ isCritical: false }), /not critical$/],
    ['without the acmeIdentifier extension', () => odd({ count: 0 }), /no acmeIdentifier extension$/],
    ['with two acmeIdentifier extensions', () => odd({ count: 2 }), /several acmeIdentifier extensions$/],
    ['signed by a CA', () => odd({ isIssued: true }), /is not self-signed$/],
  ];
  for (const [what, certificate, why] of cases) {
    test(`rejects a certificate ${what}`, async (t) => {
      const { refused } = await prepared(t, await certificate());
      await refused('incorrectResponse', why, { type });
      await refused('incorrectResponse', /^the certificate of www\.example\.test \(127\.0\.0\.1:\d+\) /, {
        type,
      });
    });
  }
});

suite('tls-alpn-01 validation without acme-tls/1', () => {
  test('fails if the server rejects the ALPN protocol or ignores it', async (t) => {
    const web = await prepared(t, {
      ...(await rightFor('www.example.test')),
      ALPNProtocols: ['h2', 'http/1.1'],
    });
    await web.refused(
      'tls',
      /^the TLS handshake with www\.example\.test failed at .*127\.0\.0\.1:\d+: TLS error: .*no application protocol/,
      { type },
    );
    const old = await prepared(t, { ...(await rightFor('www.example.test')), ALPNProtocols: [] });
    await old.refused('unauthorized', /does not speak acme-tls\/1$/, { type });
  });

  for (const [what, bytes] of [
    ['garbage', Buffer.alloc(4000, 0xa5)],
    ['an HTTP response', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['an empty response', Buffer.alloc(0)],
  ] as const) {
    test(`fails if the server sends ${what}`, async (t) => {
      const { refused, ports } = await validator(t, records);
      ports.tls = await rawServer(t, (socket) => {
        socket.once('data', () => socket.end(bytes));
      });
      await refused(
        'tls',
        /failed at .*127\.0\.0\.1:\d+: (TLS error: \S|the server closed|connection reset)/,
        { type },
      );
    });
  }

  test('fails if the connection is refused, and by default for loopback and metadata addresses', async (t) => {
    const { refused } = await validator(t, records);
    await refused('connection', /127\.0\.0\.1:1: connection refused$/, { type });
    const strict = await validator(t, records, { rules: { allowed: [] } });
    await strict.refused(
      'connection',
      /resolves to 127\.0\.0\.1, but the vault does not validate at a loopback/,
      { type },
    );
    await strict.refused('connection', /does not validate at a cloud's metadata/, {
      type,
      identifier: '169.254.169.254',
    });
  });
});
