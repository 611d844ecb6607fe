/** Key pairs: every type that can be asked for is made as asked, and every key has a name. */
import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';
import { test } from 'node:test';
import { keyTypes } from '../../src/base/key-type.ts';
import { Secret } from '../../src/base/secret.ts';
import { generatePrivateKey, keyObject, keyTypeOf, publicKeyOf } from '../../src/crypto/key-pair.ts';

for (const type of keyTypes) {
  test(`generatePrivateKey creates a key of type ${type} whose public key verifies its signatures`, async () => {
    const secret = await generatePrivateKey(type);
    const privateKey = keyObject(secret);
    assert.equal(keyTypeOf(privateKey), type);
    const publicKey = createPublicKey({ key: publicKeyOf(secret), format: 'der', type: 'spki' });
    assert.equal(keyTypeOf(publicKey), type);
    const message = Buffer.from('message');
    const algorithm = type === 'ed25519' ? null : 'sha256';
    assert(verify(algorithm, message, publicKey, sign(algorithm, message, privateKey)));
  });
}

test('twenty generated keys are all different', async () => {
  const keys = await Promise.all(Array.from({ length: 20 }, () => generatePrivateKey('ec256')));
  assert.equal(new Set(keys.map((key) => key.expose().toString('hex'))).size, 20);
});

test('RSA keys have the public exponent 65537', async () => {
  const { publicExponent } = keyObject(await generatePrivateKey('rsa2048')).asymmetricKeyDetails ?? {};
  assert.equal(publicExponent, 65537n);
});

const foreign: readonly (readonly [name: string, make: () => { privateKey: KeyObject }])[] = [
  ['rsa1024', () => generateKeyPairSync('rsa', { modulusLength: 1024 })],
  ['rsa-pss2048', () => generateKeyPairSync('rsa-pss', { modulusLength: 2048 })],
  ['ec521', () => generateKeyPairSync('ec', { namedCurve: 'secp521r1' })],
  ['ec-secp256k1', () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' })],
  ['ed448', () => generateKeyPairSync('ed448')],
];

for (const [name, make] of foreign) {
  test(`keyTypeOf returns ${name} for an imported key of that type`, () => {
    assert.equal(keyTypeOf(make().privateKey), name);
  });
}

test('bytes that are not a PKCS#8 key are rejected', () => {
  assert.throws(() => keyObject(new Secret(Buffer.from('no key'))));
  assert.throws(() => publicKeyOf(new Secret(Buffer.alloc(0))));
});
