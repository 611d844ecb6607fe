/**
 * The key that authenticates rows of the database: a random secret of the vault, sealed under the master key and
 * resealed when that is rotated, so that tags stay valid. Each purpose has its own key, derived by HKDF (RFC 5869).
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import type { Integrity, TagPurpose } from '../../base/integrity.ts';
import type { Secret } from '../../base/secret.ts';
import { sameBytes } from './constant-time.ts';

/** Size of the secret in bytes. */
export const integritySecretSize = 32;

export class IntegrityKey implements Integrity {
  readonly secret: KeyObject;
  readonly #derived = new Map<TagPurpose, KeyObject>();

  /** `secret` contains 32 random bytes, or is the secret of another integrity key. */
  constructor(secret: Secret | KeyObject) {
    this.secret = 'expose' in secret ? createSecretKey(secret.expose()) : secret;
    if (this.secret.symmetricKeySize !== integritySecretSize) {
      throw new Error('an integrity secret has 32 bytes');
    }
  }

  /** HMAC-SHA-256 of the text under the key for the purpose. */
  tag(purpose: TagPurpose, text: string): Buffer {
    // Through a string, as in base/sha256.ts.
    return Buffer.from(createHmac('sha256', this.#keyFor(purpose)).update(text).digest('latin1'), 'latin1');
  }

  fits(purpose: TagPurpose, text: string, tag: Buffer | null | undefined): boolean {
    return Buffer.isBuffer(tag) && sameBytes(this.tag(purpose, text), tag);
  }

  #keyFor(purpose: TagPurpose): KeyObject {
    const known = this.#derived.get(purpose);
    if (known !== undefined) return known;
    const info = `certificate-vault integrity v1 ${purpose}`;
    const key = createSecretKey(Buffer.from(hkdfSync('sha256', this.secret, '', info, 32)));
    this.#derived.set(purpose, key);
    return key;
  }
}
