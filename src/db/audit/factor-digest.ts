/**
 * The second factors of an administrator, and their digest in the row of the administrator, whose tag covers it
 * (row-tags.ts): factors that were added, replaced or removed in the database file do not fit. What each use changes,
 * such as counters, is not part of it.
 */
import { asciiNetstring } from '../../base/netstring.ts';
import { sha256 } from '../../base/sha256.ts';
import type { Reader, Writer } from '../database.ts';
import { setFactors } from '../tables/access/administrators.ts';
import {
  type AuthenticatorAppRow,
  deleteAuthenticatorApp,
  findAuthenticatorApp,
} from '../tables/access/authenticator-apps.ts';
import { deletePasskey, listPasskeys, type PasskeyRow } from '../tables/access/passkeys.ts';
import {
  listRecoveryCodes,
  type RecoveryCodeRow,
  replaceRecoveryCodes,
} from '../tables/access/recovery-codes.ts';

export type Factors = {
  readonly passkeys: readonly PasskeyRow[];
  readonly app: AuthenticatorAppRow | undefined;
  /** Those that are not used yet. They are no factor of their own. */
  readonly recoveryCodes: readonly RecoveryCodeRow[];
};

export const noFactors: Factors = { passkeys: [], app: undefined, recoveryCodes: [] };

export async function readFactors(reader: Reader, administratorId: number): Promise<Factors> {
  return {
    passkeys: await listPasskeys(reader, administratorId),
    app: await findAuthenticatorApp(reader, administratorId),
    recoveryCodes: await listRecoveryCodes(reader, administratorId),
  };
}

/** Whether these are the factors that the row of the administrator records. */
export function factorsFit(row: { readonly factors: Buffer | null }, found: Factors): boolean {
  // Neither is secret; no digest is empty.
  const [recorded, actual] = [row.factors ?? Buffer.alloc(0), factorsDigest(found) ?? Buffer.alloc(0)];
  return Buffer.compare(recorded, actual) === 0;
}

/**
 * Records the factors that an administrator has now; without any, the recovery codes go, too. Check `factorsFit` before
 * the change: never record forged rows. Returns the factors.
 */
export async function recordFactors(writer: Writer, administratorId: number): Promise<Factors> {
  const found = await readFactors(writer, administratorId);
  const digest = factorsDigest(found);
  if (digest === null) await replaceRecoveryCodes(writer, administratorId, []);
  await setFactors(writer, administratorId, digest);
  return digest === null ? noFactors : found;
}

/** Removes all factors of an administrator, modified ones included, and returns them. */
export async function clearFactors(writer: Writer, administratorId: number): Promise<Factors> {
  const found = await readFactors(writer, administratorId);
  for (const { id } of found.passkeys) await deletePasskey(writer, id);
  await deleteAuthenticatorApp(writer, administratorId);
  await recordFactors(writer, administratorId);
  return found;
}

export type FactorCounts = {
  readonly passkeys: number;
  readonly authenticator_apps: number;
  readonly recovery_codes: number;
};

/** For the audit log and the command line. */
export function factorCounts({ passkeys, app, recoveryCodes }: Factors): FactorCounts {
  return {
    passkeys: passkeys.length,
    authenticator_apps: app === undefined ? 0 : 1,
    recovery_codes: recoveryCodes.length,
  };
}

/** Null without any factor. */
function factorsDigest({ passkeys, app, recoveryCodes }: Factors): Buffer | null {
  if (passkeys.length === 0 && app === undefined) return null;
  const text = [
    ...passkeys.map(
      ({ id, credential_id, public_key }) =>
        asciiNetstring(`passkey ${id}`) +
        asciiNetstring(credential_id.toString('hex')) +
        asciiNetstring(public_key.toString('hex')),
    ),
    ...(app === undefined ? [] : [asciiNetstring(`authenticator app ${app.id}`)]),
    ...recoveryCodes.map(
      ({ id, code_hash }) =>
        asciiNetstring(`recovery code ${id}`) + asciiNetstring(code_hash.toString('hex')),
    ),
  ].join('');
  return sha256(text);
}
