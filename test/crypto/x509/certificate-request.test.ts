/** Certificate requests as OpenSSL sees them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { test } from 'node:test';
import { keyTypes } from '../../../src/base/key-type.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { certificateRequest } from '../../../src/crypto/x509/certificate-request.ts';
import { identifier } from '../../harness/ca/private-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';

/** What `openssl req -verify` prints of the request, on both streams. */
function openssl(request: Buffer, ...args: readonly string[]): string {
  const input = encodePem('CERTIFICATE REQUEST', request);
  return execFileSync('openssl', ['req', '-noout', ...args], { input, encoding: 'utf8', stdio: 'pipe' });
}

test('a request of every key type is signed by its key', needs('openssl'), async () => {
  for (const type of keyTypes) {
    const privateKey = await generatePrivateKey(type);
    const request = await certificateRequest([identifier('example.com')], privateKey);
    assert.match(openssl(request, '-verify', '-text'), /Version: 1 \(0x0\)/, type);
    const key = createPublicKey(openssl(request, '-pubkey'));
    assert(key.equals(createPublicKey({ key: publicKeyOf(privateKey), format: 'der', type: 'spki' })), type);
  }
});

test(
  'all names are in the subjectAltName, and the first DNS name that fits is the common name',
  needs('openssl'),
  async () => {
    const privateKey = await generatePrivateKey('ec256');
    const long = `${'a'.repeat(53)}.example.com`;
    const text = async (...names: readonly string[]) => {
      const request = await certificateRequest(names.map(identifier), privateKey);
      return openssl(request, '-text', '-subject').replace(/\s+/g, ' ');
    };
    const many = await text('192.0.2.1', long, '*.example.com', 'example.com', '2001:db8::1');
    const names = `IP Address:192.0.2.1, DNS:${long}, DNS:*.example.com, DNS:example.com, IP Address:2001:DB8:0:0:0:0:0:1`;
    assert(many.includes(names), many);
    assert.match(many, /Subject: CN ?= ?\*\.example\.com /);
    for (const only of ['192.0.2.1', long]) assert.match(await text(only), /Subject: Subject Public Key/);
  },
);

test('a request for 100 names contains them all', needs('openssl'), async () => {
  const names = Array.from({ length: 100 }, (_, number) => `host-${number}.example.com`);
  const request = await certificateRequest(names.map(identifier), await generatePrivateKey('ec384'));
  const text = openssl(request, '-text');
  for (const name of names) assert(text.includes(`DNS:${name}`));
});

test('a request without names is rejected', async () => {
  await assert.rejects(certificateRequest([], await generatePrivateKey('ec256')), /needs a name/);
});
