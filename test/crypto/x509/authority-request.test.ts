/** The CSR of a CA as OpenSSL and GnuTLS see it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { test } from 'node:test';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { authorityRequest } from '../../../src/crypto/x509/authority-request.ts';
import { needs } from '../../harness/processes/missing-program.ts';

async function request(pathLength: number) {
  const privateKey = await generatePrivateKey('ec384');
  const der = await authorityRequest({ commonName: 'Vault, of "Example" + Co', privateKey, pathLength });
  return { pem: encodePem('CERTIFICATE REQUEST', der), privateKey };
}

test('OpenSSL verifies the request and reads a CA with its path length', needs('openssl'), async () => {
  for (const pathLength of [0, 3]) {
    const { pem: input, privateKey } = await request(pathLength);
    const run = (...args: readonly string[]) =>
      execFileSync('openssl', ['req', '-noout', ...args], { input, encoding: 'utf8', stdio: 'pipe' });
    const text = run('-verify', '-text').replace(/\s+/g, ' ');
    assert.match(text, new RegExp(`X509v3 Basic Constraints: critical CA:TRUE, pathlen:${pathLength} `));
    assert.match(text, /X509v3 Key Usage: critical Certificate Sign, CRL Sign /);
    assert.match(text, /X509v3 Subject Key Identifier: /);
    assert.match(text, /Signature Algorithm: ecdsa-with-SHA384/);
    assert.match(run('-subject', '-nameopt', 'utf8'), /Vault, of "Example" \+ Co/);
    const key = createPublicKey(run('-pubkey'));
    assert(key.equals(createPublicKey({ key: publicKeyOf(privateKey), format: 'der', type: 'spki' })));
  }
});

test('GnuTLS reads the request', needs('certtool'), async () => {
  const { pem: input } = await request(0);
  const text = execFileSync('certtool', ['--crq-info'], { input, encoding: 'utf8', stdio: 'pipe' });
  assert.match(text, /Certificate Authority \(CA\): TRUE/);
  assert.match(text, /Path Length Constraint: 0/);
  assert.match(text, /Self signature: verified/);
});
