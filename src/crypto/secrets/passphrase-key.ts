/**
 * The result of running Argon2id over a passphrase once. It opens everything sealed with the same salt and costs, and
 * seals more of it, without keeping the passphrase: a server started with it can read the next master key.
 */
import { argon2, createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import type { HashCost } from './password-hash.ts';

const derive = promisify(argon2);

/** What a blob needs besides the passphrase, as JSON. Bytes are base64. */
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

/** A manipulated file must not exhaust the memory of the host or take minutes. */
const highest: HashCost = { memory: 2_097_152, passes: 64, parallelism: 64 };

const saltSize = 16;
const nonceSize = 12;
const tagSize = 16;

type Derivation = HashCost & { readonly salt: string };

export class PassphraseKey {
  readonly #key: KeyObject;
  readonly #derivation: Derivation;

  private constructor(key: KeyObject, derivation: Derivation) {
    this.#key = key;
    this.#derivation = derivation;
  }

  /** With a new salt. Takes a second and 256 MiB at the default cost. */
  static fresh(world: World, passphrase: Secret<string>, cost: HashCost): Promise<PassphraseKey> {
    const salt = world.randomBytes(saltSize).toString('base64');
    return PassphraseKey.#derived(passphrase, { ...cost, salt });
  }

  /** For an existing sealed blob; undefined if this vault could not have written such a salt or costs. */
  static async for(
    passphrase: Secret<string>,
    { salt, memory, passes, parallelism }: PassphraseSealed,
  ): Promise<PassphraseKey | undefined> {
    const derivation = { salt, memory, passes, parallelism };
    return isSane(derivation) ? PassphraseKey.#derived(passphrase, derivation) : undefined;
  }

  static async #derived(passphrase: Secret<string>, derivation: Derivation): Promise<PassphraseKey> {
    const { salt, memory, passes, parallelism } = derivation;
    const bytes = await derive('argon2id', {
      // Unicode can encode a character in several ways, and keyboards differ: normalize to NFC (RFC 8265 §4.2).
      message: passphrase.expose().normalize('NFC'),
      nonce: Buffer.from(salt, 'base64'),
      parallelism,
      tagLength: 32,
      memory,
      passes,
    });
    const key = createSecretKey(bytes);
    bytes.fill(0);
    return new PassphraseKey(key, derivation);
  }

  /** The sealed form of `plaintext`. It opens only with the same `context`, which names what it is and its owner. */
  seal(world: World, context: string, plaintext: Secret): PassphraseSealed {
    const nonce = world.randomBytes(nonceSize);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce);
    cipher.setAAD(Buffer.from(context));
    const sealed = Buffer.concat([cipher.update(plaintext.expose()), cipher.final(), cipher.getAuthTag()]);
    const { memory, passes, parallelism, salt } = this.#derivation;
    return {
      kdf: 'argon2id',
      memory,
      passes,
      parallelism,
      salt,
      cipher: 'aes-256-gcm',
      nonce: nonce.toString('base64'),
      sealed: sealed.toString('base64'),
    };
  }

  /** The plaintext, or undefined if the passphrase, the salt or the blob does not match. */
  open(context: string, { nonce, sealed }: PassphraseSealed): Secret | undefined {
    const [nonceBytes, blob] = [nonce, sealed].map((text) => Buffer.from(text, 'base64'));
    if (nonceBytes?.length !== nonceSize || blob === undefined || blob.length < tagSize) return undefined;
    const decipher = createDecipheriv('aes-256-gcm', this.#key, nonceBytes, { authTagLength: tagSize });
    decipher.setAAD(Buffer.from(context));
    decipher.setAuthTag(blob.subarray(-tagSize));
    try {
      // Everything is decrypted at once: `final` adds nothing, and a second copy would stay in memory.
      const plaintext = decipher.update(blob.subarray(0, -tagSize));
      decipher.final();
      return new Secret(plaintext);
    } catch {
      // The tag does not match: a regular result, not an error.
      return undefined;
    }
  }
}

function isSane({ memory, passes, parallelism, salt }: Derivation): boolean {
  return (
    Buffer.from(salt, 'base64').length === saltSize &&
    parallelism >= 1 &&
    parallelism <= highest.parallelism &&
    passes >= 1 &&
    passes <= highest.passes &&
    memory >= 8 * parallelism &&
    memory <= highest.memory
  );
}
