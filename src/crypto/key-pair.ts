/** Key pairs: generated and named. Private keys travel as PKCS#8 DER inside a Secret, public keys as SPKI DER. */
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { KeyType } from '../base/key-type.ts';
import { Secret } from '../base/secret.ts';

const generate = promisify(generateKeyPair);

const curves: Readonly<Record<string, string>> = {
  prime256v1: 'ec256',
  secp384r1: 'ec384',
  secp521r1: 'ec521',
};

/** Generates a PKCS#8 private key. RSA can take seconds, but runs on libuv's threads. */
export async function generatePrivateKey(type: KeyType): Promise<Secret> {
  const { privateKey } = await generateFor(type);
  return new Secret(privateKey.export({ type: 'pkcs8', format: 'der' }));
}

/** The SubjectPublicKeyInfo (RFC 5280 §4.1.2.7) of a PKCS#8 private key. */
export function publicKeyOf(privateKey: Secret): Buffer {
  return createPublicKey(keyObject(privateKey)).export({ type: 'spki', format: 'der' });
}

/** The private key as node:crypto's KeyObject. Throws if the bytes are not a PKCS#8 key. */
export function keyObject(privateKey: Secret): KeyObject {
  return createPrivateKey({ key: privateKey.expose(), format: 'der', type: 'pkcs8' });
}

/** The name of a key in `key_type`: a `KeyType`, or for imported keys also `rsa1024`, `ec521`, `ed448` … */
export function keyTypeOf(key: KeyObject): string {
  const { modulusLength, namedCurve } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'rsa':
    case 'rsa-pss':
      return `${key.asymmetricKeyType}${modulusLength ?? ''}`;
    case 'ec':
      return curves[namedCurve ?? ''] ?? `ec-${namedCurve ?? 'unknown'}`;
    default:
      return key.asymmetricKeyType ?? 'unknown';
  }
}

async function generateFor(type: KeyType) {
  switch (type) {
    case 'ec256':
      return generate('ec', { namedCurve: 'prime256v1' });
    case 'ec384':
      return generate('ec', { namedCurve: 'secp384r1' });
    case 'ed25519':
      return generate('ed25519');
    default:
      return generate('rsa', { modulusLength: Number(type.slice('rsa'.length)) });
  }
}
