/** What people import by mistake: what is refused, in which words, and that no words show anything of a key. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { Problem } from '../../../src/base/problem.ts';
import { encodePem, readPemBlocks } from '../../../src/crypto/pem.ts';
import { openssl } from '../../harness/ca/openssl-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { dir, type Files, type Fixtures, fixtures, now, p12, pemOf, raw, read } from './bundle-fixtures.ts';

/** Every fixture's private key, as a message could show it. */
function keyTraces(): string[] {
  return Object.values({ ...fixtures(), stranger: fixtures().stranger.leaf }).flatMap(({ keyPem }) => {
    const der = readPemBlocks(keyPem)[0]?.der ?? Buffer.alloc(0);
    const middle = der.subarray(36, 60);
    return [
      middle.toString('hex'),
      middle.toString('base64').slice(0, 24),
      ...keyPem.split('\n').slice(1, -2),
    ];
  });
}

type Refusal = {
  files: (f: Fixtures) => Files;
  says: RegExp;
  hint: RegExp;
  code?: string;
  password?: string;
};
const encrypted = (f: Fixtures, ...form: string[]) =>
  openssl(dir, 'pkey', '-in', f.leaf.keyPath, '-aes256', '-passout', 'pass:secret', ...form).toString();
const decrypt = /`openssl pkey -in a\.key -out decrypted\.key`/;
const refusals: Record<string, Refusal> = {
  'a key of another certificate': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf, f.lower), 'a.key': f.rsa.keyPem }),
    says: /^The private rsa2048 key in a\.key does not match any of the certificates: CN=www\.example\.com \(ec256, in a\.pem\); CN=Test Intermediate 2,O=Test \(ec256, in a\.pem\)\.$/,
    hint: /Import the key that the certificate was requested with; `openssl pkey -in KEY -pubout`/,
  },
  'an encrypted PKCS#8 key': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf, f.lower), 'a.key': encrypted(f) }),
    says: /^The private key in a\.key is encrypted\.$/,
    hint: decrypt,
  },
  'an encrypted traditional key': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf, f.lower), 'a.key': encrypted(f, '-traditional') }),
    says: /^The private key in a\.key is encrypted\.$/,
    hint: decrypt,
  },
  'an encrypted key in DER': {
    files: (f) => ({
      'a.pem': pemOf(f.leaf, f.lower),
      'a.key': readPemBlocks(encrypted(f))[0]?.der ?? '',
    }),
    says: /^The private key in a\.key is encrypted\.$/,
    hint: decrypt,
  },
  'an encrypted key in a file with spaces in its name': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf, f.lower), 'my key.pem': encrypted(f) }),
    says: /^The private key in my key\.pem is encrypted\.$/,
    hint: /-in FILE -out/,
  },
  'PKCS#12 without its password': {
    files: (f) => ({ 'a.p12': p12('-in', f.leaf.certificatePath, '-inkey', f.leaf.keyPath) }),
    says: /^a\.p12 is a PKCS#12 file that is protected by a password\.$/,
    hint: /`openssl pkcs12 -in a\.p12 -nodes -out converted\.pem`/,
  },
  'PKCS#12 with another password': {
    files: (f) => ({ 'a.p12': p12('-in', f.leaf.certificatePath, '-inkey', f.leaf.keyPath) }),
    password: 'geheim',
    says: /^The password of the PKCS#12 file a\.p12 is wrong\.$/,
    hint: /Enter its password/,
  },
  'a chain that does not connect': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf, f.upper, f.root) + f.leaf.keyPem }),
    says: /^CN=www\.example\.com was issued by CN=Test Intermediate 2,O=Test, which is not among the other certificates: CN=Test Intermediate 1,O=Test \(ec256, in a\.pem\); /,
    hint: /^Add the certificate of CN=Test Intermediate 2,O=Test/,
  },
  'a CA certificate as the leaf': {
    files: (f) => ({ 'a.pem': pemOf(f.lower, f.upper) + f.lower.keyPem }),
    says: /^The private key in a\.pem belongs to a CA certificate \(CN=Test Intermediate 2,O=Test\), /,
    hint: /^Import the certificate that this CA issued, with its key\./,
  },
  'the default output of openssl req -x509': {
    files: (f) => ({ 'a.pem': pemOf(f.accidental) + f.accidental.keyPem }),
    says: /belongs to a CA certificate \(CN=printer\.example\.com\)/,
    hint: /use --allow-ca \(`allow_ca` over HTTP\)\.$/,
  },
  garbage: {
    files: (f) => ({ 'a.pem': '<html>502 Bad Gateway</html>', 'a.key': f.leaf.keyPem }),
    says: /^a\.pem contains neither a certificate nor a private key\.$/,
    hint: /PKCS#12.*-----BEGIN CERTIFICATE-----/,
  },
  'an empty file': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf), 'a.key': '' }),
    says: /^a\.key is empty\.$/,
    hint: /Check whether the program that wrote it failed/,
  },
  'a file of white space': {
    files: () => ({ 'a.pem': '\uFEFF \r\n' }),
    says: /^a\.pem is empty\.$/,
    hint: /./,
  },
  'no file at all': {
    files: () => ({}),
    says: /^No certificate found in an import without files\.$/,
    hint: /./,
  },
  'no certificate': {
    files: (f) => ({ 'a.pem': f.leaf.keyPem, 'b.pem': f.leaf.keyPem }),
    says: /^No certificate found in a\.pem and b\.pem\.$/,
    hint: /-----BEGIN CERTIFICATE-----/,
  },
  'no key': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf, f.lower) }),
    says: /^No private key found in a\.pem\.$/,
    hint: /-----BEGIN PRIVATE KEY-----/,
  },
  'several different keys': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf) + f.leaf.keyPem, 'b.key': f.rsa.keyPem }),
    says: /^More than one private key found: the ec256 key in a\.pem and the rsa2048 key in b\.key\.$/,
    hint: /^Import only the key/,
  },
  'a public key': {
    files: (f) => ({
      'a.pem': pemOf(f.leaf),
      'a.key': openssl(dir, 'pkey', '-in', f.leaf.keyPath, '-pubout'),
    }),
    says: /^a\.key contains a public key, not the private key of the certificate\.$/,
    hint: /^Import the private key/,
  },
  'an OpenSSH key': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf), 'a.key': encodePem('OPENSSH PRIVATE KEY', Buffer.from('x')) }),
    says: /^a\.key contains an OpenSSH key, not/,
    hint: /^Import the private key/,
  },
  'a certificate request': {
    files: (f) => ({ 'a.csr': readFileSync(join(dir, 'test-leaf.csr')), 'a.key': f.leaf.keyPem }),
    says: /^a\.csr contains a certificate signing request \(CSR\), not a certificate\.$/,
    hint: /^Import the certificate that the CA issued/,
  },
  'PKCS#7': {
    files: (f) => ({
      'a.p7b': openssl(dir, 'crl2pkcs7', '-nocrl', '-certfile', f.lower.certificatePath),
      'a.pem': pemOf(f.leaf) + f.leaf.keyPem,
    }),
    says: /^a\.p7b contains certificates in the PKCS#7 format, which is not supported\.$/,
    hint: /`openssl pkcs7 -in a\.p7b -print_certs -out chain\.pem`/,
  },
  'a DSA key': {
    files: (f) => ({ 'a.pem': pemOf(f.dsa) + f.dsa.keyPem }),
    says: /^The private dsa key in a\.pem cannot be used for TLS\.$/,
    hint: /ECDSA or RSA/,
  },
  'a traditional DSA key': {
    files: (f) => ({ 'a.key': openssl(dir, 'pkey', '-in', f.dsa.keyPath, '-traditional') }),
    says: /^The private dsa key in a\.key cannot be used for TLS\.$/,
    hint: /ECDSA or RSA/,
  },
  'a key whose private half is damaged': {
    files: (f) => {
      const der = Buffer.from(readPemBlocks(f.leaf.keyPem)[0]?.der ?? '');
      der.writeUInt8(der.readUInt8(40) ^ 1, 40);
      return { 'a.pem': pemOf(f.leaf, f.lower), 'a.key': encodePem('PRIVATE KEY', der) };
    },
    says: /^The private key in a\.key is damaged\.$/,
    hint: /^Copy the complete file again/,
  },
  'a certificate that is damaged inside': {
    files: (f) => ({
      'a.pem':
        pemOf(f.leaf) + f.leaf.keyPem + encodePem('CERTIFICATE', raw(f.lower.certificatePem).subarray(9)),
    }),
    says: /^Block 3 of a\.pem is damaged: its content is not a valid CERTIFICATE\.$/,
    hint: /^Copy the complete file again/,
  },
  'a block that is cut off': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf) + f.leaf.keyPem.slice(0, -9) }),
    says: /^a\.pem is damaged: the PRIVATE KEY block at line \d+ has no END line\.$/,
    hint: /^Copy the complete file again/,
  },
  'a file over 1 MiB': {
    files: () => ({ 'a.pem': Buffer.alloc(2 ** 20 + 1, 'x') }),
    code: 'payload_too_large',
    says: /^a\.pem is larger than 1 MiB\.$/,
    hint: /^Import only the certificate/,
  },
  'more than 100 certificates': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf).repeat(60), 'b.pem': pemOf(f.leaf).repeat(41) + f.leaf.keyPem }),
    code: 'payload_too_large',
    says: /^Too many certificates: the limit is 100\.$/,
    hint: /^Import only the certificate/,
  },
  'a terminal escape sequence in the file name': {
    files: () => ({ 'a\u001b[2J.pem': '' }),
    says: /^a\?\[2J\.pem is empty\.$/,
    hint: /./,
  },
};

for (const [what, { files, says, hint, code = 'invalid_request', password }] of Object.entries(refusals)) {
  test(`an import with ${what} is rejected with cause and hint and no key material`, needs('openssl'), () => {
    assert.throws(
      () => read(files(fixtures()), now, password),
      (error) => {
        assert.ok(error instanceof Problem, inspect(error));
        assert.equal(error.code, code);
        assert.match(error.message, says);
        assert.match(error.hint ?? '', hint);
        for (const sentence of [error.message, error.hint ?? '']) assert.match(sentence, /^[^\n]+\.$/);
        const shown = inspect(error, { depth: 9 });
        for (const trace of keyTraces()) assert.equal(shown.includes(trace), false);
        return true;
      },
    );
  });
}
