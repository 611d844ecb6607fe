/** Keys that sign requests, in the words of JOSE (RFC 7517, RFC 7518): accounts' keys, and certificates' for revocation. */
import { createPublicKey } from 'node:crypto';
import type { JWK } from 'jose';
import type { Secret } from '../base/secret.ts';
import { keyObject, keyTypeOf } from '../crypto/key-pair.ts';

/** The JWS algorithm of a PKCS#8 key (RFC 8555 §6.2). Throws a plain error for a kind of key that no CA would take. */
export function algorithmOf(privateKey: Secret): string {
  const type = keyTypeOf(keyObject(privateKey));
  if (type === 'ec256') return 'ES256';
  if (type === 'ec384') return 'ES384';
  if (type === 'ec521') return 'ES512';
  if (type === 'ed25519') return 'EdDSA';
  if (/^rsa\d+$/.test(type)) return 'RS256';
  throw new Error(`signing ACME requests with ${type} keys is not supported`);
}

/** The public half as a JWK with the required members only. */
export async function publicJwk(privateKey: Secret): Promise<JWK> {
  const { exportJWK } = await import('jose');
  return exportJWK(createPublicKey(keyObject(privateKey)));
}

/** The key's thumbprint (RFC 7638, SHA-256), base64url. */
export async function thumbprint(privateKey: Secret): Promise<string> {
  const { calculateJwkThumbprint } = await import('jose');
  return calculateJwkThumbprint(await publicJwk(privateKey));
}
