/** Pins as other programs compute them. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { publicKeyPin } from '../../src/crypto/public-key-pin.ts';
import { issue, openssl } from '../harness/ca/openssl-chain.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';

test(
  'publicKeyPin equals the SHA-256 that openssl computes, for every certificate of a key',
  needs('openssl'),
  (t) => {
    const dir = tempDir(t);
    for (const keyAlgorithm of ['ec256', 'rsa2048', 'ed25519'] as const) {
      const one = issue(dir, `one-${keyAlgorithm}`, { keyAlgorithm });
      const again = issue(dir, `again-${keyAlgorithm}`, { keyOf: one });
      openssl(dir, 'pkey', '-in', one.keyPath, '-pubout', '-outform', 'DER', '-out', 'public.der');
      openssl(dir, 'dgst', '-sha256', '-binary', '-out', 'public.sha256', 'public.der');
      const expected = `sha256//${openssl(dir, 'base64', '-A', '-in', 'public.sha256')}`;
      for (const { certificatePem } of [one, again]) {
        assert.equal(publicKeyPin(new X509Certificate(certificatePem)), expected);
      }
    }
  },
);
