/** Ed25519 signatures (RFC 8032), which anyone with the public key can verify. */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { Secret } from '../base/secret.ts';
import { keyObject } from './key-pair.ts';

/** The 64 bytes of the signature; the key is PKCS#8 DER. */
export function signEd25519(privateKey: Secret, data: Buffer): Buffer {
  return sign(null, data, keyObject(privateKey));
}

/** Whether the key (SPKI DER) signed exactly this data. */
export function isSignedByEd25519(publicKey: Buffer, data: Buffer, signature: Buffer): boolean {
  return verify(null, data, publicKeyObject(publicKey), signature);
}

/** The key in the form that `openssl pkeyutl -verify -pubin` reads. */
export function publicKeyPem(publicKey: Buffer): string {
  return publicKeyObject(publicKey).export({ type: 'spki', format: 'pem' }) as string;
}

/** The key in a PEM as SPKI DER, or undefined if it is not an Ed25519 key. */
export function readPublicKeyPem(pem: string): Buffer | undefined {
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyType === 'ed25519' ? key.export({ type: 'spki', format: 'der' }) : undefined;
  } catch {
    // Not a PEM, or not a key.
    return undefined;
  }
}

/** A short public id of a key: the first 8 bytes of the SHA-256 of its SPKI DER, in hexadecimal. */
export function publicKeyId(publicKey: Buffer): string {
  return createHash('sha256').update(publicKey).digest('hex').slice(0, 16);
}

function publicKeyObject(publicKey: Buffer): KeyObject {
  return createPublicKey({ key: publicKey, format: 'der', type: 'spki' });
}
