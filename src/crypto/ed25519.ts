/** Signatures by Ed25519 (RFC 8032), which anybody can check who has the public key. */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { Secret } from '../base/secret.ts';
import { keyObject } from './key-pair.ts';

/** The 64 bytes of a signature; the key is PKCS#8 DER. */
export function signEd25519(privateKey: Secret, data: Buffer): Buffer {
  return sign(null, data, keyObject(privateKey));
}

/** Whether the key, SPKI DER, has signed exactly this. */
export function isSignedByEd25519(publicKey: Buffer, data: Buffer, signature: Buffer): boolean {
  return verify(null, data, publicKeyObject(publicKey), signature);
}

/** What `openssl pkeyutl -verify -pubin` reads. */
export function publicKeyPem(publicKey: Buffer): string {
  return publicKeyObject(publicKey).export({ type: 'spki', format: 'pem' }) as string;
}

/** The key in such a PEM as SPKI DER, or undefined where it holds none of this kind. */
export function readPublicKeyPem(pem: string): Buffer | undefined {
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyType === 'ed25519' ? key.export({ type: 'spki', format: 'der' }) : undefined;
  } catch {
    // No PEM, or none of a key.
    return undefined;
  }
}

/** A short public name of a key: the first 8 bytes of the SHA-256 of its SPKI DER, in hexadecimal. */
export function publicKeyId(publicKey: Buffer): string {
  return createHash('sha256').update(publicKey).digest('hex').slice(0, 16);
}

function publicKeyObject(publicKey: Buffer): KeyObject {
  return createPublicKey({ key: publicKey, format: 'der', type: 'spki' });
}
