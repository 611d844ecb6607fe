/**
 * The master key and what is derived from it. The key itself encrypts and signs nothing: every purpose has a key of
 * its own by HKDF (RFC 5869), so that no blob, tag or signature made for one purpose means anything for another.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import type { Secret } from '../base/secret.ts';

/** What keys are derived for. A purpose that has shipped keeps its name for ever. */
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
  | 'entity tag'
  | 'sign: session'
  | 'authenticate: backup'
  | 'authenticate: vault mark';

/** Bytes of a master key. */
export const masterKeySize = 32;

/** Bytes of the id by which a sealed blob names its master key. */
export const keyIdSize = 8;

export class MasterKey {
  readonly #bytes: Secret;
  readonly #derived = new Map<KeyPurpose, KeyObject>();
  /** A public name of this key: it shows which key a blob needs and gives nothing away. */
  readonly id: Buffer;
  /** The id as people read it. */
  readonly name: string;

  /** `bytes` are the 32 random bytes of the key file. */
  constructor(bytes: Secret) {
    if (bytes.expose().length !== masterKeySize) throw new Error('a master key has 32 bytes');
    this.#bytes = bytes;
    this.id = Buffer.from(this.derive('key id').export().subarray(0, keyIdSize));
    this.name = this.id.toString('hex');
  }

  /** The 32 bytes themselves, for the key's own file and for sealing them under a passphrase. */
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
    // The key object has a copy of its own, which OpenSSL clears when it goes.
    bytes.fill(0);
    this.#derived.set(purpose, key);
    return key;
  }

  /** HMAC-SHA-256 of `data` under the key for the purpose. */
  authenticate(purpose: KeyPurpose, data: Buffer): Buffer {
    return createHmac('sha256', this.derive(purpose)).update(data).digest();
  }
}
