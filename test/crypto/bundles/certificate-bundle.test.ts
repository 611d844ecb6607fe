/** What people import: each dress that is accepted, and what is said about what could surprise. */

import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { keyObject } from '../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { issue, makeChain, openssl } from '../../harness/ca/openssl-chain.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import {
  asKey,
  dir,
  type Files,
  type Fixtures,
  fixtures,
  now,
  p12,
  pemOf,
  raw,
  read,
  relabel,
} from './bundle-fixtures.ts';

const accepted: Record<string, (f: Fixtures) => Files> = {
  'chain and key in two files': (f) => ({ 'a.pem': pemOf(f.leaf, f.lower, f.upper), 'a.key': f.leaf.keyPem }),
  'everything in one file': (f) => ({ 'a.pem': pemOf(f.leaf, f.lower, f.upper) + f.leaf.keyPem }),
  'the key first, in the file named second': (f) => ({
    'a.pem': pemOf(f.upper),
    'b.pem': f.leaf.keyPem + pemOf(f.leaf, f.lower),
  }),
  'the chain out of order': (f) => ({ 'a.pem': pemOf(f.upper, f.lower, f.leaf), 'a.key': f.leaf.keyPem }),
  'the root in the middle': (f) => ({ 'a.pem': pemOf(f.leaf, f.root, f.upper, f.lower) + f.leaf.keyPem }),
  'everything twice': (f) => ({
    'a.pem': (pemOf(f.leaf, f.lower, f.upper, f.lower) + f.leaf.keyPem).repeat(2),
  }),
  'CRLF and a byte order mark': (f) => ({
    'a.pem': `\uFEFF${pemOf(f.leaf, f.lower, f.upper)}${f.leaf.keyPem}`.replaceAll('\n', '\r\n'),
  }),
  'UTF-16': (f) => ({
    'a.pem': Buffer.from(`\uFEFF${pemOf(f.leaf, f.lower, f.upper)}${f.leaf.keyPem}`, 'utf16le'),
  }),
  'Bag Attributes': (f) => {
    const bundle = pemOf(f.leaf, f.lower, f.upper) + f.leaf.keyPem;
    return {
      'a.pem': bundle.replace(
        /-----BEGIN/g,
        'Bag Attributes\n    localKeyID: 01\nsubject=CN = x\n-----BEGIN',
      ),
    };
  },
  'a SEC1 key after EC PARAMETERS': (f) => ({
    'a.pem': pemOf(f.leaf, f.lower, f.upper),
    'a.key': openssl(dir, 'ecparam', '-name', 'prime256v1').toString() + asKey(f.leaf.keyPem, 'sec1'),
  }),
  'a SEC1 key labeled PRIVATE KEY': (f) => ({
    'a.pem': pemOf(f.leaf, f.lower, f.upper),
    'a.key': relabel(asKey(f.leaf.keyPem, 'sec1'), 'PRIVATE KEY'),
  }),
  'X509 CERTIFICATE and TRUSTED CERTIFICATE': (f) => ({
    'a.pem': relabel(pemOf(f.leaf), 'X509 CERTIFICATE') + f.leaf.keyPem,
    'b.pem': [f.lower, f.upper]
      .map((one) => openssl(dir, 'x509', '-in', one.certificatePath, '-trustout', '-addtrust', 'serverAuth'))
      .join(''),
  }),
  'DER instead of PEM': (f) => ({
    'a.cer': raw(f.leaf.certificatePem),
    'b.cer': raw(f.lower.certificatePem),
    'c.cer': raw(f.upper.certificatePem),
    'a.key': createPrivateKey(f.leaf.keyPem).export({ type: 'sec1', format: 'der' }),
  }),
  'PKCS#12': (f) => ({ 'a.p12': p12('-in', join(dir, 'test-fullchain.pem'), '-inkey', f.leaf.keyPath) }),
  'PKCS#12 without the chain and a PEM file with the chain': (f) => ({
    'a.pfx': p12('-in', f.leaf.certificatePath, '-inkey', f.leaf.keyPath),
    'chain.pem': pemOf(f.lower, f.upper),
  }),
  'a request, a public key, parameters and a CRL beside it': (f) => ({
    'a.pem':
      readFileSync(join(dir, 'test-leaf.csr'), 'utf8') +
      openssl(dir, 'pkey', '-in', f.leaf.keyPath, '-pubout').toString() +
      encodePem('DH PARAMETERS', Buffer.from('x')) +
      encodePem('X509 CRL', Buffer.from('x')) +
      pemOf(f.leaf, f.lower, f.upper) +
      f.leaf.keyPem,
  }),
};

for (const [dress, files] of Object.entries(accepted)) {
  test(
    `an import with ${dress} gives leaf, ordered intermediates without the root, and key`,
    needs('openssl'),
    () => {
      const f = fixtures();
      const bundle = read(files(f), now, 'secret');
      assert.deepEqual(bundle.leaf, raw(f.leaf.certificatePem));
      assert.deepEqual(bundle.chain, [raw(f.lower.certificatePem), raw(f.upper.certificatePem)]);
      assert.ok(keyObject(bundle.privateKey).equals(createPrivateKey(f.leaf.keyPem)));
      assert.deepEqual(bundle.warnings, []);
    },
  );
}

test(
  'PEM blocks in any order, split over two files and repeated, give the same leaf and chain',
  needs('openssl'),
  () => {
    const f = fixtures();
    const pieces = [f.leaf.certificatePem, f.lower.certificatePem, f.upper.certificatePem, f.leaf.keyPem];
    const order = fc.shuffledSubarray(pieces, { minLength: pieces.length });
    const extra = fc.shuffledSubarray([f.root.certificatePem, ...pieces]);
    fc.assert(
      fc.property(order, extra, fc.nat(2), (all, again, cut) => {
        const rest = [...all.slice(cut + 1), ...again];
        const { leaf, chain, warnings } = read({
          'a.pem': all.slice(0, cut + 1).join(''),
          'b.pem': rest.join(''),
        });
        assert.deepEqual(
          [leaf, ...chain],
          [f.leaf, f.lower, f.upper].map((one) => raw(one.certificatePem)),
        );
        assert.deepEqual(warnings, []);
      }),
      fuzzRuns(50),
    );
  },
);

test('a PKCS#1 key is read and returned as PKCS#8', needs('openssl'), () => {
  const { rsa, lower, upper } = fixtures();
  const key = asKey(rsa.keyPem, 'pkcs1');
  assert.match(key, /BEGIN RSA PRIVATE KEY/);
  const { privateKey } = read({ 'a.pem': pemOf(rsa, lower, upper) + key });
  assert.equal(encodePem('PRIVATE KEY', privateKey.expose()), asKey(rsa.keyPem, 'pkcs8'));
});

test('RSA, P-384 and Ed25519 chains connect', needs('openssl'), () => {
  for (const keyAlgorithm of ['rsa2048', 'ec384', 'ed25519'] as const) {
    const { leaf, intermediates, root } = makeChain(dir, { keyAlgorithm, label: keyAlgorithm });
    const bundle = read({ 'a.pem': pemOf(root, ...intermediates, leaf) + leaf.keyPem });
    assert.deepEqual([bundle.chain.length, bundle.warnings], [2, []]);
  }
});

const warned: Record<
  string,
  { files: (f: Fixtures) => Files; chain: (f: Fixtures) => string[]; says: string[] }
> = {
  'an expired certificate': {
    files: (f) => ({ 'a.pem': pemOf(f.expired, f.lower) + f.leaf.keyPem }),
    chain: (f) => [f.lower.certificatePem],
    says: ['CN=www.example.com expired at 2029-01-01T00:00:00Z.'],
  },
  'a certificate that is not valid yet': {
    files: (f) => ({ 'a.pem': pemOf(f.future, f.lower) + f.leaf.keyPem }),
    chain: (f) => [f.lower.certificatePem],
    says: ['CN=www.example.com is not valid before 2031-01-01T00:00:00Z.'],
  },
  'only an expired intermediate': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf, f.expiredLower) + f.leaf.keyPem }),
    chain: (f) => [f.expiredLower.certificatePem],
    says: ['CN=Test Intermediate 2,O=Test expired at 2029-01-01T00:00:00Z.'],
  },
  'an expired intermediate before a valid one': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf, f.expiredLower, f.lower) + f.leaf.keyPem }),
    chain: (f) => [f.lower.certificatePem],
    says: ['CN=Test Intermediate 2,O=Test in a.pem is not part of the chain and was ignored.'],
  },
  'unrelated certificates after the chain': {
    files: (f) => ({
      'a.pem': pemOf(f.leaf, f.lower, f.upper) + f.leaf.keyPem,
      'more.pem': pemOf(f.stranger.leaf, f.stranger.root),
    }),
    chain: (f) => [f.lower.certificatePem, f.upper.certificatePem],
    says: [
      'CN=www.example.com in more.pem is not part of the chain and was ignored.',
      'CN=Stranger Root,O=Stranger in more.pem is not part of the chain and was ignored.',
    ],
  },
  'no intermediate': {
    files: (f) => ({ 'a.pem': pemOf(f.leaf) + f.leaf.keyPem }),
    chain: () => [],
    says: [
      'The intermediate certificate of CN=www.example.com is missing: clients that do not know CN=Test Intermediate 2,O=Test may not trust it.',
    ],
  },
  'the root as the only issuer (no warning)': {
    files: (f) => ({ 'a.pem': pemOf(f.root, f.underRoot) + f.underRoot.keyPem }),
    chain: () => [],
    says: [],
  },
  'a self-signed certificate that is not a CA (no warning)': {
    files: (f) => ({ 'a.pem': pemOf(f.own) + f.own.keyPem }),
    chain: () => [],
    says: [],
  },
};

for (const [what, { files, chain, says }] of Object.entries(warned)) {
  test(`an import with ${what} is accepted with the expected chain and warnings`, needs('openssl'), () => {
    const bundle = read(files(fixtures()));
    assert.deepEqual(bundle.warnings, says);
    assert.deepEqual(bundle.chain, chain(fixtures()).map(raw));
  });
}

test(
  'the certificate with the latest notBefore becomes the leaf if several match the key',
  needs('openssl'),
  () => {
    const { older, leaf, future, lower } = fixtures();
    for (const order of [
      [older, leaf, future],
      [future, leaf, older],
    ]) {
      const bundle = read({ 'a.pem': pemOf(...order, lower) + leaf.keyPem });
      assert.deepEqual(bundle.leaf, raw(future.certificatePem));
      assert.equal(bundle.warnings.length, 3);
    }
  },
);

test('exactly 100 certificates and 1 MiB are accepted', needs('openssl'), () => {
  const { leaf, lower } = fixtures();
  const text = pemOf(leaf, lower).repeat(50) + leaf.keyPem;
  const { chain, warnings } = read({ 'a.pem': text.padEnd(2 ** 20, '\n') });
  assert.deepEqual([chain.length, warnings], [1, []]);
});

test('a chain of 98 intermediates is read when listed from root to leaf', needs('openssl'), () => {
  const { root } = fixtures();
  const path = [root];
  for (let level = 1; level < 99; level++) {
    const issuer = path[0];
    path.unshift(issue(dir, `level-${level}`, { role: 'authority', keyOf: root, ...(issuer && { issuer }) }));
  }
  const leaf = issue(dir, 'deep-leaf', { ...(path[0] && { issuer: path[0] }) });
  const { chain } = read({ 'a.pem': pemOf(...path.toReversed(), leaf) + leaf.keyPem });
  assert.deepEqual(
    chain,
    path.slice(0, -1).map((one) => raw(one.certificatePem)),
  );
});
