/** Which key is behind a certificate, checked with keys that match, that do not, and that are damaged. */
import assert from 'node:assert/strict';
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { readPemBlocks } from '../../../src/crypto/pem.ts';
import { signsFor } from '../../../src/crypto/x509/certificate-chain.ts';
import { issue } from '../../harness/ca/openssl-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';

test('signsFor returns true only for the undamaged private key of the certificate', needs('openssl'), (t) => {
  const dir = tempDir(t);
  const { certificatePem, keyPem } = issue(dir, 'signs', {});
  const certificate = new X509Certificate(certificatePem);
  assert.equal(signsFor(createPrivateKey(keyPem), certificate), true);
  assert.equal(signsFor(generateKeyPairSync('ed25519').privateKey, certificate), false);
  const der = Buffer.from(readPemBlocks(keyPem)[0]?.der ?? '');
  der.writeUInt8(der.readUInt8(40) ^ 1, 40);
  const damaged = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  assert.equal(certificate.checkPrivateKey(damaged), true, 'the public halves are the same');
  assert.equal(signsFor(damaged, certificate), false);
});
