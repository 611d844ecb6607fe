/** Ed25519: the vectors of RFC 8032, and what OpenSSL says of our signatures. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Secret } from '../../src/base/secret.ts';
import { isSignedByEd25519, publicKeyId, publicKeyPem, signEd25519 } from '../../src/crypto/ed25519.ts';
import { generatePrivateKey, publicKeyOf } from '../../src/crypto/key-pair.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';

const pkcs8 = (seed: string) => new Secret(Buffer.from(`302e020100300506032b657004220420${seed}`, 'hex'));

for (const [seed, publicKey, message, signature] of [
  [
    '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
] as const) {
  test(`the vector of RFC 8032 §7.1 with ${message.length / 2} bytes is signed and checked`, () => {
    const key = pkcs8(seed);
    const data = Buffer.from(message, 'hex');
    assert.equal(publicKeyOf(key).subarray(-32).toString('hex'), publicKey);
    assert.equal(signEd25519(key, data).toString('hex'), signature);
    assert(isSignedByEd25519(publicKeyOf(key), data, Buffer.from(signature, 'hex')));
  });
}

test('isSignedByEd25519 returns false for another text, another key and half a signature', async () => {
  const key = await generatePrivateKey('ed25519');
  const other = publicKeyOf(await generatePrivateKey('ed25519'));
  const data = Buffer.from('text');
  const signature = signEd25519(key, data);
  assert(isSignedByEd25519(publicKeyOf(key), data, signature));
  assert(!isSignedByEd25519(publicKeyOf(key), Buffer.from('texts'), signature));
  assert(!isSignedByEd25519(other, data, signature));
  assert(!isSignedByEd25519(publicKeyOf(key), data, signature.subarray(0, 32)));
  assert.match(publicKeyId(other), /^[0-9a-f]{16}$/);
  assert.notEqual(publicKeyId(other), publicKeyId(publicKeyOf(key)));
});

test('OpenSSL checks a signature with the public key alone', needs('openssl'), async (t) => {
  const key = await generatePrivateKey('ed25519');
  const dir = tempDir(t);
  const file = (name: string, content: string | Buffer) => {
    writeFileSync(join(dir, name), content);
    return join(dir, name);
  };
  const data = Buffer.from('six lines\n');
  const words = [
    ...['pkeyutl', '-verify', '-pubin', '-rawin'],
    ...['-inkey', file('key.pem', publicKeyPem(publicKeyOf(key)))],
    ...['-sigfile', file('signature', signEd25519(key, data)), '-in'],
  ];
  assert.match(execFileSync('openssl', [...words, file('text', data)], { encoding: 'utf8' }), /Successfully/);
  assert.throws(() => execFileSync('openssl', [...words, file('other', 'seven lines\n')], { stdio: 'pipe' }));
});
