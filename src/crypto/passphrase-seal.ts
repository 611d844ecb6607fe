/**
 * Sealing under a passphrase, for the one secret that leaves the vault's machine: the master key in a backup. Argon2id
 * (RFC 9106) makes the key, AES-256-GCM seals; costs and salt stand beside the blob, so that it opens for ever.
 */
import { argon2, createCipheriv, createDecipheriv } from 'node:crypto';
import { promisify } from 'node:util';
import { Secret } from '../base/secret.ts';
import type { World } from '../base/world.ts';
import type { HashCost } from './password-hash.ts';

const derive = promisify(argon2);

/** What a blob needs besides the passphrase, in a form for JSON. Bytes are base64. */
export type PassphraseSealed = {
  readonly kdf: 'argon2id';
  /** KiB. */
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
  readonly salt: string;
  readonly cipher: 'aes-256-gcm';
  readonly nonce: string;
  /** Ciphertext, then the tag. */
  readonly sealed: string;
};

/** Four times the memory of a sign-in: whoever has the file may guess for years, and it is opened once in years. */
export const passphraseCost: HashCost = { memory: 262_144, passes: 3, parallelism: 4 };

/** A file that was tampered with must not take the machine's memory or minutes of its time. */
const highest: HashCost = { memory: 2_097_152, passes: 64, parallelism: 64 };

const saltSize = 16;
const nonceSize = 12;
const tagSize = 16;

/** The sealed form of `plaintext`. It opens only with the same `context`, which says what it is and whose. */
export async function sealUnderPassphrase(
  world: World,
  passphrase: Secret<string>,
  context: string,
  plaintext: Secret,
  cost: HashCost = passphraseCost,
): Promise<PassphraseSealed> {
  const salt = world.randomBytes(saltSize);
  const nonce = world.randomBytes(nonceSize);
  const cipher = createCipheriv('aes-256-gcm', await keyFrom(passphrase, salt, cost), nonce);
  cipher.setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(plaintext.expose()), cipher.final(), cipher.getAuthTag()]);
  const { memory, passes, parallelism } = cost;
  return {
    kdf: 'argon2id',
    memory,
    passes,
    parallelism,
    salt: salt.toString('base64'),
    cipher: 'aes-256-gcm',
    nonce: nonce.toString('base64'),
    sealed: sealed.toString('base64'),
  };
}

/** The plaintext, or undefined where the passphrase is another, or the blob was altered: nobody can tell which. */
export async function openUnderPassphrase(
  passphrase: Secret<string>,
  context: string,
  { salt, nonce, sealed, ...cost }: PassphraseSealed,
): Promise<Secret | undefined> {
  const [saltBytes, nonceBytes, blob] = [salt, nonce, sealed].map((text) => Buffer.from(text, 'base64'));
  if (!isSane(cost) || saltBytes?.length !== saltSize || nonceBytes?.length !== nonceSize) return undefined;
  if (blob === undefined || blob.length < tagSize) return undefined;
  const key = await keyFrom(passphrase, saltBytes, cost);
  const decipher = createDecipheriv('aes-256-gcm', key, nonceBytes, { authTagLength: tagSize });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(blob.subarray(-tagSize));
  try {
    return new Secret(Buffer.concat([decipher.update(blob.subarray(0, -tagSize)), decipher.final()]));
  } catch {
    // The tag does not fit: that is the answer, not a fault.
    return undefined;
  }
}

function isSane({ memory, passes, parallelism }: HashCost): boolean {
  return (
    parallelism >= 1 &&
    parallelism <= highest.parallelism &&
    passes >= 1 &&
    passes <= highest.passes &&
    memory >= 8 * parallelism &&
    memory <= highest.memory
  );
}

/** Unicode has several ways to write one character, and keyboards differ in theirs: NFC, as RFC 8265 §4.2 has it. */
async function keyFrom(passphrase: Secret<string>, salt: Buffer, cost: HashCost): Promise<Buffer> {
  return derive('argon2id', {
    message: passphrase.expose().normalize('NFC'),
    nonce: salt,
    parallelism: cost.parallelism,
    tagLength: 32,
    memory: cost.memory,
    passes: cost.passes,
  });
}
