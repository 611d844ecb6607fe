/**
 * Private keys as encrypted PKCS#8 (RFC 5958 §3), which OpenSSL and others read without the vault. Node encrypts with
 * 2,048 rounds of PBKDF2 and cannot be given more, so the file is encoded here.
 */
import { createCipheriv, createPrivateKey, type KeyObject, pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import type { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import { integer, nothing, objectIdentifier, octetString, sequence } from '../der.ts';
import { encodePem, pemText, readPemBlocks } from '../pem.ts';

/**
 * About a second for each guess on one core. Argon2id and scrypt resist better, but many programs do not read them
 * here.
 */
const rounds = 2_000_000;

const label = 'ENCRYPTED PRIVATE KEY';

const oids = {
  pbkdf2: objectIdentifier('1.2.840.113549.1.5.12'),
  pbes2: objectIdentifier('1.2.840.113549.1.5.13'),
  hmacSha256: objectIdentifier('1.2.840.113549.2.9'),
  aes256Cbc: objectIdentifier('2.16.840.1.101.3.4.1.42'),
};

/** The PEM of a PKCS#8 key under a passphrase (UTF-8): AES-256-CBC, PBKDF2 and HMAC-SHA-256 (RFC 8018 §6.2). */
export async function encryptedKeyPem(
  world: Pick<World, 'randomBytes'>,
  privateKey: Secret,
  passphrase: Secret<string>,
): Promise<string> {
  const [salt, iv] = [world.randomBytes(16), world.randomBytes(16)];
  const key = await promisify(pbkdf2)(passphrase.expose(), salt, rounds, 32, 'sha256');
  const cipher = createCipheriv('aes-256-cbc', key, iv);
  const ciphertext = Buffer.concat([cipher.update(privateKey.expose()), cipher.final()]);
  const prf = sequence(oids.hmacSha256, nothing);
  const derivation = sequence(oids.pbkdf2, sequence(octetString(salt), integer(rounds), prf));
  const scheme = sequence(oids.aes256Cbc, octetString(iv));
  return encodePem(
    label,
    sequence(sequence(oids.pbes2, sequence(derivation, scheme)), octetString(ciphertext)),
  );
}

export type EncryptedKeyError = 'not-encrypted' | 'no-key' | 'wrong-passphrase';

/**
 * The private key in a PEM file that any of the passphrases opens, or why there is none. OpenSSL reports a wrong
 * passphrase and a damaged file alike. The key derivation runs on the calling thread, so only commands may call this.
 */
export function openEncryptedKey(
  file: Buffer,
  passphrases: readonly Secret<string>[],
): KeyObject | EncryptedKeyError {
  const keys = readPemBlocks(pemText(file), 'The file').filter((block) =>
    block.label.endsWith('PRIVATE KEY'),
  );
  const encrypted = keys.find((block) => block.label === label);
  if (encrypted === undefined) return keys.length === 0 ? 'no-key' : 'not-encrypted';
  for (const passphrase of passphrases) {
    try {
      return createPrivateKey({
        key: encodePem(label, encrypted.der),
        passphrase: passphrase.expose(),
      });
    } catch {
      // The next passphrase may open it.
    }
  }
  return 'wrong-passphrase';
}
