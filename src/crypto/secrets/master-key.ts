/**
 * The master key and the keys derived from it. The master key itself encrypts and signs nothing: every purpose has its
 * own key, derived by HKDF (RFC 5869), so that a blob, tag or signature for one purpose is useless for another.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import type { Secret } from '../../base/secret.ts';

/** Purposes of derived keys. A purpose that has shipped keeps its name forever. */
export type KeyPurpose =
  | 'key id'
  | 'seal: certificate private key'
  | 'seal: certificate authority key'
  | 'seal: master key check'
  | 'seal: acme account key'
  | 'seal: external account key'
  | 'seal: dns provider secret'
  | 'seal: audit key'
  | 'seal: notification channel settings'
  | 'seal: deploy target settings'
  | 'seal: oidc sign-in'
  | 'seal: authenticator app secret'
  | 'seal: second factor'
  | 'entity tag'
  | 'sign: session'
  | 'sign: bearer session'
  | 'authenticate: backup'
  | 'authenticate: vault mark';

/** Size of a master key in bytes. */
export const masterKeySize = 32;

/** Size in bytes of the id that names the master key in a sealed blob. */
export const keyIdSize = 8;

export class MasterKey {
  readonly #bytes: Secret;
  readonly #derived = new Map<KeyPurpose, KeyObject>();
  /** A public id of this key: names the key that a blob needs and reveals nothing else. */
  readonly id: Buffer;
  /** The id in hexadecimal. */
  readonly name: string;

  /** `bytes` are the 32 random bytes of the key file. */
  constructor(bytes: Secret) {
    if (bytes.expose().length !== masterKeySize) throw new Error('a master key has 32 bytes');
    this.#bytes = bytes;
    this.id = Buffer.from(this.derive('key id').export().subarray(0, keyIdSize));
    this.name = this.id.toString('hex');
  }

  /** The 32 bytes themselves, for the key file and for sealing under a passphrase. */
  exported(): Secret {
    return this.#bytes;
  }

  /** The 256-bit key for one purpose, derived once. */
  derive(purpose: KeyPurpose): KeyObject {
    const known = this.#derived.get(purpose);
    if (known !== undefined) return known;
    const info = `certificate-vault v1 ${purpose}`;
    const bytes = Buffer.from(hkdfSync('sha256', this.#bytes.expose(), '', info, 32));
    const key = createSecretKey(bytes);
    // The key object has its own copy, which OpenSSL clears when it is freed.
    bytes.fill(0);
    this.#derived.set(purpose, key);
    return key;
  }

  /** HMAC-SHA-256 of `data` under the key for the purpose. */
  authenticate(purpose: KeyPurpose, data: Buffer): Buffer {
    return createHmac('sha256', this.derive(purpose)).update(data).digest();
  }
}
