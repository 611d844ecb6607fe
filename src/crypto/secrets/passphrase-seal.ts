/**
 * Sealing under a passphrase, for the only secret that may leave the host of the vault: the master key. Argon2id (RFC
 * 9106) derives the key, AES-256-GCM seals; costs and salt are stored with the blob, so that it can always be opened.
 */
import type { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import { PassphraseKey, type PassphraseSealed } from './passphrase-key.ts';
import type { HashCost } from './password-hash.ts';

/** Four times the memory of a sign-in: an attacker with the file can guess for years, and it is rarely opened. */
export const passphraseCost: HashCost = { memory: 262_144, passes: 3, parallelism: 4 };

/** The sealed form of `plaintext`. It opens only with the same `context`, which names what it is and its owner. */
export async function sealUnderPassphrase(
  world: World,
  passphrase: Secret<string>,
  context: string,
  plaintext: Secret,
  cost: HashCost = passphraseCost,
): Promise<PassphraseSealed> {
  return (await PassphraseKey.fresh(world, passphrase, cost)).seal(world, context, plaintext);
}

/** The plaintext, or undefined if the passphrase is wrong or the blob was altered; these cannot be distinguished. */
export async function openUnderPassphrase(
  passphrase: Secret<string>,
  context: string,
  blob: PassphraseSealed,
): Promise<Secret | undefined> {
  return (await PassphraseKey.for(passphrase, blob))?.open(context, blob);
}
