/** Certificate signing requests of other programs: what is read from them, and what is refused, in bounded time. */
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { suite, test } from 'node:test';
import { explicit, integer, objectIdentifier, sequence, tagged } from '../../../src/crypto/der.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { RequestRefused } from '../../../src/crypto/x509/request-refused.ts';
import { isSameRequest, readSigningRequest, requestText } from '../../../src/crypto/x509/signing-request.ts';
import { derOf, opensslKeys, opensslRequest, type RequestWish } from '../../harness/ca/openssl-requests.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const pem = (der: Buffer) => encodePem('CERTIFICATE REQUEST', der);
const www = { names: 'DNS:www.example.test' };

/** The message of the refusal. */
function refusal(text: string): string {
  try {
    readSigningRequest(text);
  } catch (error) {
    assert(error instanceof RequestRefused, String(error));
    return error.message;
  }
  return 'accepted';
}

function refusalOf(wish: RequestWish): string {
  return refusal(opensslRequest(wish).csr);
}

/** A request with this RSA key that nothing signed. */
function unsignedRsa(modulus: Buffer, exponent: Buffer): string {
  const bits = (content: Buffer) => tagged(0x03, Buffer.of(0), content);
  const algorithm = (oid: string) => sequence(objectIdentifier(oid), tagged(0x05));
  const key = sequence(
    algorithm('1.2.840.113549.1.1.1'),
    bits(sequence(integer(modulus), integer(exponent))),
  );
  const info = sequence(integer(0), sequence(), key, explicit(0, Buffer.alloc(0)));
  return pem(sequence(info, algorithm('1.2.840.113549.1.1.11'), bits(randomBytes(modulus.length))));
}

function modulusOf(bits: number): Buffer {
  const modulus = randomBytes(bits / 8);
  modulus[0] = 0xc1;
  modulus[modulus.length - 1] = 0x01;
  return modulus;
}

const usual = Buffer.from('010001', 'hex');

suite('a CSR from OpenSSL', needs('openssl'), () => {
  test('with a key of each accepted type is read: key, pin and names', () => {
    for (const [type, key] of Object.entries(opensslKeys)) {
      const made = opensslRequest({ key, ...www });
      const request = readSigningRequest(made.csr);
      const own = createPublicKey(createPrivateKey(made.key)).export({ type: 'spki', format: 'der' });
      assert.deepEqual([request.keyType, request.publicKey.equals(own)], [type, true]);
      assert.deepEqual([request.domains, request.pin.slice(0, 8)], [['www.example.test'], 'sha256//']);
      assert.equal(readSigningRequest(request.pem).pem, request.pem);
    }
  });

  test('lists hosts, addresses, URIs and email addresses, normalized and once each', () => {
    const names =
      'DNS:WWW.Example.test,DNS:*.example.test,IP:192.0.2.1,IP:2001:db8::1,URI:spiffe://example.test/web,email:ops@example.test,DNS:www.example.test';
    const { domains, uris, emails } = readSigningRequest(opensslRequest({ names }).csr);
    assert.deepEqual(domains, ['www.example.test', '*.example.test', '192.0.2.1', '2001:db8::1']);
    assert.deepEqual([uris, emails], [['spiffe://example.test/web'], ['ops@example.test']]);
  });

  test('lists its common name first if that is a host name and not otherwise', () => {
    const named = (subject: string, names?: string) =>
      readSigningRequest(opensslRequest({ subject, ...(names && { names }) }).csr);
    const both = named('/O=Example/CN=b.example.test', 'DNS:a.example.test,DNS:b.example.test');
    assert.deepEqual(both.domains, ['b.example.test', 'a.example.test']);
    assert.deepEqual(named('/CN=only.example.test').domains, ['only.example.test']);
    const person = named('/CN=alice', 'email:alice@example.test');
    assert.deepEqual([person.domains, person.commonName], [[], 'alice']);
  });

  test('is accepted with key usages and an unknown extension that is not critical', () => {
    const extensions = [
      'keyUsage=critical,digitalSignature',
      'extendedKeyUsage=critical,serverAuth',
      'basicConstraints=critical,CA:FALSE',
      '1.2.3.4=ASN1:NULL',
    ];
    assert.deepEqual(readSigningRequest(opensslRequest({ ...www, extensions }).csr).domains, [
      'www.example.test',
    ]);
  });

  test('equals another CSR with the same key and names but another signature', () => {
    const first = opensslRequest(www);
    const again = opensslRequest({ ...www, key: { pem: first.key } });
    const wider = opensslRequest({ names: `${www.names},DNS:b.example.test`, key: { pem: first.key } });
    assert.notEqual(first.csr, again.csr);
    assert(isSameRequest(first.csr, again.csr));
    assert(!isSameRequest(first.csr, wider.csr));
    assert(!isSameRequest(first.csr, opensslRequest(www).csr));
    assert(!isSameRequest(first.csr, null) && isSameRequest(null, null));
  });

  test('is read from DER, below the output of "openssl req -text" and as NEW CERTIFICATE REQUEST', () => {
    const { csr } = opensslRequest(www);
    assert.equal(readSigningRequest(requestText(derOf(csr))).pem, csr);
    const { csr: wordy } = opensslRequest({ ...www, options: ['-text'] });
    assert.deepEqual(readSigningRequest(wordy).domains, ['www.example.test']);
    const old = csr.replaceAll('CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST');
    assert.equal(readSigningRequest(old).pem, csr);
  });
});

suite('a CSR is rejected', needs('openssl'), () => {
  test('if its key is too short, of another type, or has explicit parameters', () => {
    const cases: [readonly string[], RegExp][] = [
      [['-newkey', 'rsa:1024'], /has an RSA key of 1024 bits; use RSA with 2048 to 4096 bits/],
      [
        ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-521'],
        /not accepted \(1\.2\.840\.10045\.2\.1 1\.3\.132\.0\.35\)/,
      ],
      [['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:secp256k1'], /type that is not accepted/],
      [['-newkey', 'ed448'], /type that is not accepted \(1\.3\.101\.113\)/],
      [
        ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-pkeyopt', 'ec_param_enc:explicit'],
        /type that is not accepted/,
      ],
      [['-newkey', 'rsa-pss'], /type that is not accepted/],
    ];
    for (const [key, message] of cases) assert.match(refusalOf({ key, ...www }), message);
  });

  test('within 0.5 s of CPU time if its RSA key is too long or has an unusual exponent', () => {
    const before = process.cpuUsage();
    assert.match(refusal(unsignedRsa(modulusOf(16_384), usual)), /RSA key of 16384 bits/);
    assert.match(refusal(unsignedRsa(modulusOf(4096), randomBytes(511))), /exponent other than 65537/);
    assert.match(refusal(unsignedRsa(modulusOf(2048), Buffer.of(3))), /exponent other than 65537/);
    const even = modulusOf(2048);
    even[even.length - 1] = 0x02;
    assert.match(refusal(unsignedRsa(even, usual)), /even modulus/);
    assert.match(refusal(unsignedRsa(modulusOf(2048), usual)), /has a signature that its key did not make/);
    const { user } = process.cpuUsage(before);
    assert(user < 500_000, `${user} µs`);
  });

  test('if it is signed with SHA-1, MD5 or SHA3-256, or was changed after signing', () => {
    const key = opensslKeys.rsa2048;
    assert.match(refusalOf({ key, ...www, options: ['-sha1'] }), /is signed with SHA-1, which is broken/);
    assert.match(refusalOf({ key, ...www, options: ['-md5'] }), /is signed with MD5, which is broken/);
    assert.match(refusalOf({ ...www, options: ['-sha1'] }), /is signed with SHA-1/);
    assert.match(refusalOf({ ...www, options: ['-sha3-256'] }), /algorithm that is not accepted/);
    const changed = derOf(opensslRequest(www).csr);
    changed.write('x', changed.indexOf('www.example.test'));
    assert.match(refusal(pem(changed)), /has a signature that its key did not make/);
  });

  test('if it requests a CA certificate, an invalid name or an unknown critical extension', () => {
    const cases: [RequestWish, RegExp][] = [
      [{ ...www, extensions: ['basicConstraints=critical,CA:TRUE'] }, /asks for a CA certificate/],
      [
        { ...www, extensions: ['1.2.3.4=critical,ASN1:NULL'] },
        /critical extension 1\.2\.3\.4, which is not supported/,
      ],
      [{ names: 'otherName:1.2.3.4;UTF8:alice' }, /a name of another type \(otherName\)/],
      [{ names: 'RID:1.2.3.4' }, /a name of another type \(registeredID\)/],
      [{ names: 'DNS:not a name' }, /"not a name", which is not a valid DNS name/],
      [{ names: 'DNS:www.example.test\u0007' }, /"www\.example\.test\?", which is not a valid DNS name/],
      [{ names: 'URI:nonsense' }, /"nonsense", which is not a valid URI/],
      [{ names: 'email:nobody' }, /"nobody", which is not a valid email address/],
    ];
    for (const [wish, message] of cases) assert.match(refusalOf(wish), message);
  });

  test('if the text is not exactly one complete CSR', () => {
    const { csr, key } = opensslRequest(www);
    const der = derOf(csr);
    const cases: [string, RegExp][] = [
      ['', /has no PEM block/],
      ['nonsense', /has no PEM block/],
      [key + csr, /comes with a private key, which must stay where it is/],
      [csr + csr, /has several requests/],
      [
        csr.replace('-----END', '-----EN'),
        /is damaged: the CERTIFICATE REQUEST block at line 1 has no END line/,
      ],
      [pem(Buffer.concat([der, Buffer.from('more')])), /is damaged: its DER has 4 bytes after its end/],
      [pem(der.subarray(0, -3)), /is damaged: its DER ends too early/],
      [pem(Buffer.alloc(0)), /has no PEM block|is damaged/],
      [csr + ' '.repeat(100_000), /is larger than 64 KiB/],
      [encodePem('CERTIFICATE', der), /is a certificate, not a request/],
    ];
    for (const [text, message] of cases) assert.match(refusal(text), message);
  });

  test('if any byte is changed or its end is cut off', () => {
    const { csr } = opensslRequest({
      ...www,
      subject: '/CN=www.example.test',
      extensions: ['keyUsage=critical,digitalSignature'],
    });
    const der = derOf(csr);
    let refused = 0;
    for (let at = 0; at < der.length; at += 1) {
      for (const byte of [0x00, 0x80, 0xff, (der[at] ?? 0) ^ 1]) {
        const changed = Buffer.from(der);
        changed[at] = byte;
        if (changed.equals(der)) continue;
        if (refusal(pem(changed)) !== 'accepted') refused += 1;
        else assert.fail(`byte ${at} as ${byte} was accepted`);
      }
      assert.notEqual(refusal(pem(der.subarray(0, at))), 'accepted');
    }
    assert(refused > 2 * der.length);
  });
});

test('large CSRs with many tiny or nested values are processed in less than 1 s of CPU time', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const many = (part: Buffer) =>
    Buffer.concat(Array.from({ length: Math.floor(45_000 / part.length) }, () => part));
  const request = (subject: Buffer, attributes: Buffer) => {
    const info = sequence(integer(0), subject, spki, tagged(0xa0, attributes));
    const signature = sign('sha256', info, privateKey);
    const algorithm = sequence(objectIdentifier('1.2.840.10045.4.3.2'));
    return pem(sequence(info, algorithm, tagged(0x03, Buffer.of(0), signature)));
  };
  const name = tagged(0x31, sequence(objectIdentifier('2.5.4.3'), tagged(0x0c, Buffer.from('x'))));
  const attribute = sequence(objectIdentifier('1.2.3'), tagged(0x31));
  const before = process.cpuUsage();
  assert.equal(refusal(request(tagged(0x30, many(name)), Buffer.alloc(0))), 'accepted');
  assert.equal(refusal(request(tagged(0x30), many(attribute))), 'accepted');
  let nested: Buffer = Buffer.alloc(0);
  while (nested.length < 40_000) nested = tagged(0x30, nested);
  assert.match(refusal(pem(nested)), /is damaged/);
  const { user } = process.cpuUsage(before);
  assert(user < 1_000_000, `${user} µs`);
});
