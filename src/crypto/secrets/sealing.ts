/**
 * Sealing: how secrets are stored in the database. AES-256-GCM with one key per purpose; the associated data names
 * table, record and purpose, so a blob that was moved, truncated or altered cannot be decrypted.
 *
 * Format 1: version (1 byte) | id of the master key (8) | nonce (12) | ciphertext | tag (16).
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import { type KeyPurpose, keyIdSize, type MasterKey } from './master-key.ts';

/** The owner of a blob. Never reuse `record` for another row, even after this one is deleted. */
export type BlobOwner = {
  readonly table: string;
  readonly record: string;
  readonly purpose: Extract<KeyPurpose, `seal: ${string}`>;
};

const format = 1;
const nonceSize = 12;
const tagSize = 16;
const headerSize = 1 + keyIdSize;
const overhead = headerSize + nonceSize + tagSize;
const algorithm = 'aes-256-gcm';

/** A blob that cannot be decrypted; `reason` distinguishes a wrong key from damage. */
export class SealError extends Error {
  readonly reason: 'format' | 'other-key' | 'damaged';

  constructor(reason: 'format' | 'other-key' | 'damaged', message: string) {
    super(message);
    this.name = 'SealError';
    this.reason = reason;
  }
}

/** The sealed form of `plaintext` for its owner. */
export function seal(key: MasterKey, world: World, owner: BlobOwner, plaintext: Secret): Buffer {
  const header = Buffer.concat([Buffer.of(format), key.id]);
  const nonce = world.randomBytes(nonceSize);
  const cipher = createCipheriv(algorithm, key.derive(owner.purpose), nonce);
  cipher.setAAD(associatedData(header, owner));
  return Buffer.concat([
    header,
    nonce,
    cipher.update(plaintext.expose()),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
}

/** The plaintext of a blob. Throws SealError unless this key sealed exactly these bytes for exactly this owner. */
export function open(key: MasterKey, owner: BlobOwner, blob: Buffer): Secret {
  const sealedBy = keyIdOf(blob);
  if (!sealedBy.equals(key.id)) {
    throw new SealError('other-key', `sealed with master key ${sealedBy.toString('hex')}, not with this one`);
  }
  const nonce = blob.subarray(headerSize, headerSize + nonceSize);
  const decipher = createDecipheriv(algorithm, key.derive(owner.purpose), nonce, { authTagLength: tagSize });
  decipher.setAAD(associatedData(blob.subarray(0, headerSize), owner));
  decipher.setAuthTag(blob.subarray(-tagSize));
  try {
    // Everything is decrypted at once; `final` verifies the tag and adds nothing.
    const plaintext = decipher.update(blob.subarray(headerSize + nonceSize, -tagSize));
    decipher.final();
    return new Secret(plaintext);
  } catch {
    // OpenSSL gives no useful reason.
    throw new SealError(
      'damaged',
      `the sealed ${owner.purpose.slice('seal: '.length)} failed to decrypt: the data or its owner was altered`,
    );
  }
}

/** The name of the master key that sealed the blob. Throws SealError if it is not a blob. */
export function sealedBy(blob: Buffer): string {
  return keyIdOf(blob).toString('hex');
}

/** Size of the plaintext in bytes, known without opening. Throws SealError if it is not a blob. */
export function sealedSize(blob: Buffer): number {
  keyIdOf(blob);
  return blob.length - overhead;
}

function keyIdOf(blob: Buffer): Buffer {
  if (blob.length < overhead) throw new SealError('format', `a sealed blob has at least ${overhead} bytes`);
  if (blob[0] !== format) throw new SealError('format', `unknown sealing format ${blob[0]}`);
  return blob.subarray(1, headerSize);
}

function associatedData(header: Buffer, { table, record, purpose }: BlobOwner): Buffer {
  return Buffer.from(JSON.stringify([header.toString('hex'), table, record, purpose]));
}
