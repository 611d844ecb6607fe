/**
 * Sealing under a passphrase, for the one secret that may leave the vault's machine: the master key. Argon2id (RFC 9106)
 * makes the key, AES-256-GCM seals; costs and salt stand beside the blob, so that it opens for ever.
 */
import type { Secret } from '../base/secret.ts';
import type { World } from '../base/world.ts';
import { PassphraseKey, type PassphraseSealed } from './passphrase-key.ts';
import type { HashCost } from './password-hash.ts';

/** Four times the memory of a sign-in: whoever has the file may guess for years, and it is opened once in years. */
export const passphraseCost: HashCost = { memory: 262_144, passes: 3, parallelism: 4 };

/** The sealed form of `plaintext`. It opens only with the same `context`, which says what it is and whose. */
export async function sealUnderPassphrase(
  world: World,
  passphrase: Secret<string>,
  context: string,
  plaintext: Secret,
  cost: HashCost = passphraseCost,
): Promise<PassphraseSealed> {
  return (await PassphraseKey.fresh(world, passphrase, cost)).seal(world, context, plaintext);
}

/** The plaintext, or undefined where the passphrase is another, or the blob was altered: nobody can tell which. */
export async function openUnderPassphrase(
  passphrase: Secret<string>,
  context: string,
  blob: PassphraseSealed,
): Promise<Secret | undefined> {
  return (await PassphraseKey.for(passphrase, blob))?.open(context, blob);
}
