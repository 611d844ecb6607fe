/**
 * The certificates of the private CA as other programs see them: OpenSSL at its strictest, and Node's own TLS. Dates
 * and serial numbers are read back as well, because no verifier complains about one that is merely another.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect, createServer } from 'node:tls';
import { isAddress } from '../../../src/base/identifier.ts';
import { type KeyType, keyTypes } from '../../../src/base/key-type.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { certificateFacts } from '../../../src/crypto/x509/certificate-facts.ts';
import { issueIntermediate } from '../../../src/crypto/x509/x509-issuance.ts';
import { openssl } from '../../harness/ca/openssl-chain.ts';
import {
  assertVerifies,
  dates,
  extensionOf,
  identifier,
  makeChain,
  makeLeaf,
  opensslSays,
  pemFile,
  verify,
} from '../../harness/ca/private-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const longName = `${'a'.repeat(53)}.example.com`;
const manyNames = Array.from({ length: 100 }, (_, number) => `host-${number}.example.com`);

test(
  'a CA of every key type makes chains that OpenSSL accepts at its strictest',
  needs('openssl'),
  async (t) => {
    for (const keyType of keyTypes) {
      await t.test(keyType, async () => {
        const chain = await makeChain({ keyType });
        for (const purpose of ['sslserver', 'sslclient']) assertVerifies(chain, '-purpose', purpose);
        for (const host of ['www.example.com', 'any.example.org'])
          assertVerifies(chain, '-verify_hostname', host);
        for (const address of ['127.0.0.1', '2001:db8::1']) assertVerifies(chain, '-verify_ip', address);
        assert.throws(() => verify(chain, '-verify_hostname', 'www.example.net'), /[Hh]ostname mismatch/);
        assert.throws(() => verify(chain, '-verify_ip', '127.0.0.2'), /IP address mismatch/);
        const usage = keyType.startsWith('rsa') ? 'Digital Signature, Key Encipherment' : 'Digital Signature';
        assert.equal(extensionOf(chain.leaf, 'keyUsage'), `X509v3 Key Usage: critical\n    ${usage}`);
      });
    }
  },
);

test(
  'a leaf allows server and client authentication, and a CA signs only certificates and CRLs',
  needs('openssl'),
  async () => {
    const { root, intermediate, leaf } = await makeChain();
    assert.match(extensionOf(root, 'basicConstraints'), /critical\n +CA:TRUE, pathlen:1$/);
    assert.match(extensionOf(intermediate, 'basicConstraints'), /critical\n +CA:TRUE, pathlen:0$/);
    assert.match(extensionOf(leaf, 'basicConstraints'), /critical\n +CA:FALSE$/);
    for (const authority of [root, intermediate]) {
      assert.match(extensionOf(authority, 'keyUsage'), /critical\n +Certificate Sign, CRL Sign$/);
    }
    assert.match(
      extensionOf(leaf, 'extendedKeyUsage'),
      /: \n +TLS Web Server Authentication, TLS Web Client Authentication$/,
    );
  },
);

test('a certificate is signed with the hash that suits the key of its issuer', async () => {
  const expected = {
    ec256: 'ecdsa-with-SHA256',
    ec384: 'ecdsa-with-SHA384',
    rsa2048: 'sha256WithRSAEncryption',
    ed25519: 'ED25519',
  } as const;
  for (const [keyType, algorithm] of Object.entries(expected)) {
    for (const { certificate } of Object.values(await makeChain({ keyType: keyType as KeyType }))) {
      assert.equal(new X509Certificate(certificate).signatureAlgorithm, algorithm);
    }
  }
});

const names: readonly (readonly [title: string, names: readonly string[], subject: string])[] = [
  ['a DNS name', ['www.example.com'], 'CN=www.example.com'],
  ['a wildcard', ['*.example.com'], 'CN=*.example.com'],
  ['an IPv4 address and then a DNS name', ['192.0.2.1', 'www.example.com'], 'CN=www.example.com'],
  ['an IPv4 address only', ['192.0.2.1'], ''],
  ['IPv6 addresses only', ['2001:db8::1', '::', '::ffff:192.0.2.1', 'fe80::1:0:0:1'], ''],
  ['an international name', ['bücher.example'], 'CN=xn--bcher-kva.example'],
  ['a name of 64 characters', [longName.slice(1)], `CN=${longName.slice(1)}`],
  ['a name of 65 characters, too long for a common name', [longName, 'www.example.com'], ''],
  ['a name of 253 characters', [`${'a.'.repeat(121)}example.com`], ''],
  ['100 names', manyNames, `CN=${manyNames[0]}`],
];

for (const [title, texts, subject] of names) {
  test(
    `a leaf for ${title} has the requested identifiers and the expected subject`,
    needs('openssl'),
    async () => {
      const identifiers = texts.map(identifier);
      const chain = await makeChain({ leaf: { identifiers } });
      const facts = certificateFacts(chain.leaf.certificate);
      assert.deepEqual(facts.domains, identifiers);
      assert.equal(facts.subject, subject);
      assert.equal(/critical$/m.test(extensionOf(chain.leaf, 'subjectAltName')), subject === '');
      const x509 = new X509Certificate(chain.leaf.certificate);
      for (const one of identifiers) {
        const found = isAddress(one)
          ? x509.checkIP(one)
          : x509.checkHost(one.replace('*', 'any'), { subject: 'never' });
        assert.notEqual(found, undefined, one);
      }
      assertVerifies(chain, '-purpose', 'sslserver');
    },
  );
}

test('OpenSSL rejects a CA below the intermediate and a leaf that signs', needs('openssl'), async () => {
  const { root, intermediate, leaf } = await makeChain();
  const privateKey = await generatePrivateKey('ec256');
  const request = { publicKey: publicKeyOf(privateKey), serial: randomBytes(16), ...dates };
  const below = await issueIntermediate({ ...request, commonName: 'Below', issuer: intermediate });
  const tooDeep = await makeLeaf({ certificate: below, privateKey });
  const chain = { root, intermediate, leaf: tooDeep };
  assert.throws(() => verify(chain, '-untrusted', pemFile(below)), /path length constraint exceeded/);
  const signed = { root, intermediate, leaf: await makeLeaf(leaf) };
  assert.throws(() => verify(signed, '-untrusted', pemFile(leaf.certificate)), /invalid CA certificate/);
});

test('OpenSSL rejects a chain under a CA of the same name with another key', needs('openssl'), async () => {
  const chain = await makeChain();
  const namesake = await makeChain();
  assertVerifies(chain);
  assert.throws(() => verify({ ...chain, root: namesake.root }), /unable to get (local )?issuer certificate/);
  assert.throws(
    () => verify({ ...chain, intermediate: namesake.intermediate }),
    /unable to get (local )?issuer/,
  );
});

test(
  'the authority key ID of a leaf equals the subject key ID of its issuer',
  needs('openssl'),
  async (t) => {
    const dir = tempDir(t);
    const privateKey = await generatePrivateKey('ec256');
    writeFileSync(join(dir, 'ca.key'), encodePem('PRIVATE KEY', privateKey.expose()));
    const extensions = ['subjectKeyIdentifier=0102030405', 'keyUsage=critical,keyCertSign,cRLSign'];
    const added = extensions.flatMap((extension) => ['-addext', extension]);
    const subject = ['-subj', '/CN=Company CA', '-days', '9000', ...added];
    openssl(dir, 'req', '-x509', '-new', '-key', 'ca.key', '-out', 'ca.der', '-outform', 'DER', ...subject);
    const issuer = { certificate: readFileSync(join(dir, 'ca.der')), privateKey };
    const now = Date.now();
    const leaf = await makeLeaf(issuer, { notBefore: now, notAfter: now + 1000 * 60 * 60 });
    assert.equal(
      extensionOf(leaf, 'authorityKeyIdentifier'),
      'X509v3 Authority Key Identifier: \n    01:02:03:04:05',
    );
    assertVerifies({ root: issuer, intermediate: issuer, leaf }, '-partial_chain');
  },
);

test('issuance is rejected if the key is not that of the issuer certificate', async () => {
  const { root, intermediate } = await makeChain();
  await assert.rejects(makeLeaf({ ...intermediate, privateKey: root.privateKey }), /not that of the issuer/);
});

test('a certificate may expire with its issuer, but not a second later', async () => {
  const { intermediate } = await makeChain();
  const { leaf } = await makeChain({ leaf: { notAfter: dates.notAfter } });
  assert.equal(certificateFacts(leaf.certificate).notAfter, dates.notAfter);
  await assert.rejects(makeLeaf(intermediate, { notAfter: dates.notAfter + 1000 }), /longer than its issuer/);
});

test('a leaf without a name is not issued', async () => {
  const { intermediate } = await makeChain();
  await assert.rejects(makeLeaf(intermediate, { identifiers: [] }), /needs a name/);
});

const times: readonly (readonly [time: string, encoded: RegExp])[] = [
  ['2026-11-21T01:02:03.000Z', /^UTCTIME +:261121010203Z$/],
  ['2026-11-21T01:02:03.999Z', /^UTCTIME +:261121010203Z$/],
  ['2049-12-31T23:59:59.999Z', /^UTCTIME +:491231235959Z$/],
  ['2050-01-01T00:00:00.000Z', /^GENERALIZEDTIME +:20500101000000Z$/],
  ['2126-02-28T12:00:00.500Z', /^GENERALIZEDTIME +:21260228120000Z$/],
];

for (const [time, encoded] of times) {
  test(
    `a notAfter of ${time} is encoded in whole seconds with the right time type`,
    needs('openssl'),
    async () => {
      const notAfter = Date.parse(time);
      const chain = await makeChain({ notAfter, leaf: { notBefore: notAfter - 3_600_000, notAfter } });
      for (const { certificate } of Object.values(chain)) {
        assert.equal(certificateFacts(certificate).notAfter, Math.floor(notAfter / 1000) * 1000);
        const written = opensslSays('asn1parse', '-in', pemFile(certificate)).match(
          /(UTC|GENERALIZED)TIME.*/g,
        );
        assert.match(written?.[1] ?? '', encoded);
      }
      assert.equal(certificateFacts(chain.root.certificate).notBefore, dates.notBefore);
      assertVerifies(chain, '-attime', String(Math.floor(notAfter / 1000) - 60));
    },
  );
}

const serials: readonly (readonly [title: string, serial: Buffer])[] = [
  ['zero', Buffer.alloc(16)],
  ['one', Buffer.from('1'.padStart(32, '0'), 'hex')],
  ['the highest bit', Buffer.from('8'.padEnd(32, '0'), 'hex')],
  ['all bits', Buffer.alloc(16, 0xff)],
];

for (const [title, serial] of serials) {
  test(`a serial of ${title} becomes a positive number of 16 octets`, needs('openssl'), async () => {
    const given = Buffer.from(serial);
    const chain = await makeChain({ leaf: { serial: given } });
    const shown = certificateFacts(chain.leaf.certificate).serial;
    assert.match(shown, /^[4-7][0-9A-F]{31}$/);
    assert.equal(shown.slice(2), serial.toString('hex').slice(2).toUpperCase());
    assert.deepEqual(given, serial, 'what the caller handed in stays as it was');
    assertVerifies(chain);
  });
}

test('TLS on both ends accepts the chain, by name and by address', async () => {
  const { root, intermediate } = await makeChain({ keyType: 'ec384' });
  for (const keyType of keyTypes) {
    const leaf = await makeLeaf(intermediate, {}, keyType);
    const identity = {
      key: encodePem('PRIVATE KEY', leaf.privateKey.expose()),
      cert: [leaf, intermediate].map(({ certificate }) => encodePem('CERTIFICATE', certificate)).join(''),
      ca: encodePem('CERTIFICATE', root.certificate),
    };
    const server = createServer({ ...identity, requestCert: true, rejectUnauthorized: false }, (socket) => {
      socket.end(String(socket.authorized));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
    try {
      for (const name of [{ servername: 'www.example.com' }, { servername: 'any.example.org' }, {}]) {
        const socket = connect({ ...identity, ...address, ...name });
        const [answer] = await once(socket, 'data');
        assert.deepEqual([socket.authorized, String(answer)], [true, 'true'], keyType);
        socket.destroy();
      }
      const misled = connect({ ...identity, ...address, servername: 'www.example.net' });
      await assert.rejects(once(misled, 'secureConnect'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    } finally {
      server.close();
    }
  }
});

test('the X.509 library is not loaded before something is issued', () => {
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ resolve(name, context, next) { loaded.push(name); return next(name, context); } });
    const library = () => loaded.filter((name) => /^(@peculiar|reflect-metadata)/.test(name));
    const { issueRoot } = await import('${import.meta.resolve('../../../src/crypto/x509/x509-issuance.ts')}');
    const { generatePrivateKey } = await import('${import.meta.resolve('../../../src/crypto/key-pair.ts')}');
    const before = library();
    const privateKey = await generatePrivateKey('ec256');
    await issueRoot({ commonName: 'Root', privateKey, serial: Buffer.alloc(16), notBefore: 0, notAfter: 1000 });
    console.log(JSON.stringify([before, library().slice(0, 2)]));`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8',
  });
  assert.deepEqual(JSON.parse(output), [[], ['reflect-metadata', '@peculiar/x509']]);
});
