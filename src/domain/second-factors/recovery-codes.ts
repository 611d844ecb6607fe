/** Recovery codes, which replace a second factor that is lost, each once. The vault keeps only hashes of them. */
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { sameBytes } from '../../crypto/secrets/constant-time.ts';
import { createRecoveryCode, recoveryCodeIn } from '../../crypto/secrets/totp.ts';
import type { Factors } from '../../db/audit/factor-digest.ts';
import type { Writer } from '../../db/database.ts';
import { replaceRecoveryCodes } from '../../db/tables/access/recovery-codes.ts';
import type { AdministratorIdentity } from '../access/identity.ts';
import type { Actor } from '../audit/audit.ts';
import type { WorldContext } from '../contexts.ts';
import { recordOwnChange, requireOwn } from './own-factors.ts';
import type { FactorContext } from './sealed-state.ts';

/** How many codes a person gets. */
export const recoveryCodeCount = 10;

/** Replaces the codes of a person with new ones, in the caller's transaction, which must record the factors. */
export async function drawRecoveryCodes(
  { world }: WorldContext,
  writer: Writer,
  administratorId: number,
): Promise<Secret<string>[]> {
  const codes = Array.from({ length: recoveryCodeCount }, () => createRecoveryCode(world));
  const integrity = requireIntegrity(writer);
  const hashes = codes.map((code) => hashOf(integrity, administratorId, recoveryCodeIn(code) ?? ''));
  await replaceRecoveryCodes(writer, administratorId, hashes);
  return codes.map((code) => new Secret(code));
}

/**
 * Replaces one's own codes, and returns the new ones, which cannot be shown again. Throws `second_factor_not_found`
 * without a factor that they could replace.
 */
export async function renewRecoveryCodes(
  vault: FactorContext,
  actor: Actor,
  identity: AdministratorIdentity,
): Promise<Secret<string>[]> {
  return vault.db.write(async (writer) => {
    const person = await requireOwn(vault, writer, identity);
    if (person.row.factors === null) {
      throw new Problem('second_factor_not_found', {
        detail: 'Recovery codes replace a second factor; set up a passkey or an authenticator app first.',
      });
    }
    const codes = await drawRecoveryCodes(vault, writer, person.row.id);
    const change = { action: 'administrator.recovery_codes', now: vault.world.now() } as const;
    await recordOwnChange(writer, actor, person, identity, change);
    return codes;
  });
}

/** The id of the unused code that was typed; undefined for any other text. */
export function findRecoveryCode(
  integrity: Integrity,
  administratorId: number,
  { recoveryCodes }: Factors,
  typed: string,
): number | undefined {
  const code = recoveryCodeIn(typed);
  if (code === undefined) return undefined;
  const presented = hashOf(integrity, administratorId, code);
  return recoveryCodes.find(({ code_hash }) => sameBytes(presented, code_hash))?.id;
}

/** Codes have 80 random bits, and the key of the hash is not in the database. */
function hashOf(integrity: Integrity, administratorId: number, code: string): Buffer {
  return integrity.tag('recovery code', `${administratorId}:${code}`);
}
