/**
 * Sets up and removes the authenticator app of a person. The secret is stored only when the app has shown a valid code,
 * so that no one locks themselves out.
 */
import { requireIntegrity } from '../../base/integrity.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { base32, totpSecretSize, totpStepOf, totpUri } from '../../crypto/secrets/totp.ts';
import type { Writer } from '../../db/database.ts';
import {
  deleteAuthenticatorApp,
  insertAuthenticatorApp,
  setAuthenticatorSecret,
  takeStep,
} from '../../db/tables/access/authenticator-apps.ts';
import { takeRecoveryCode } from '../../db/tables/access/recovery-codes.ts';
import type { AdministratorIdentity } from '../access/identity.ts';
import type { Actor } from '../audit/audit.ts';
import { authenticatorSecretOwner, openFor, sealFor } from '../sealed-secrets.ts';
import type { ConfirmAppInput } from './factor-inputs.ts';
import { type Person, recordOwnChange, refuseTheLastFactor, requireOwn } from './own-factors.ts';
import { drawRecoveryCodes, findRecoveryCode } from './recovery-codes.ts';
import { type FactorContext, openState, sealState, useState } from './sealed-state.ts';

/** A secret that the app must confirm. */
type PendingApp = { readonly session: number; readonly secret: string };

/** What an app needs; shown once. */
export type NewApp = {
  readonly pending: Secret<string>;
  /** Base32, for typing. */
  readonly secret: Secret<string>;
  /** `otpauth://…`, for a QR code. */
  readonly uri: Secret<string>;
  readonly expiresAt: string;
};

/** Draws a secret for the app of the signed-in person. `host` names the vault in the app. Stores nothing. */
export async function beginApp(
  vault: FactorContext,
  identity: AdministratorIdentity,
  host: string,
): Promise<NewApp> {
  await requireOwn(vault, vault.db.reader, identity);
  const bytes = new Secret(vault.world.randomBytes(totpSecretSize));
  const content: PendingApp = {
    session: identity.session.id,
    secret: bytes.expose().toString('base64url'),
  };
  const { sealed, state } = await sealState(vault, 'authenticator app', content);
  const account = host === '' ? identity.name : `${identity.name}@${host}`;
  return {
    pending: sealed,
    secret: new Secret(base32(bytes.expose())),
    uri: new Secret(totpUri(bytes, { issuer: 'Certificate Vault', account })),
    expiresAt: formatTimestamp(state.expiresAt),
  };
}

/**
 * Stores the app that shows this code, replaces an earlier one, and returns new recovery codes. Throws
 * `sign_in_expired` for a set-up of another session, or one that was used or has expired, and `invalid_request` for a
 * wrong code.
 */
export async function confirmApp(
  vault: FactorContext,
  actor: Actor,
  identity: AdministratorIdentity,
  { pending, code }: ConfirmAppInput,
): Promise<Secret<string>[]> {
  const state = openState<PendingApp>(vault, 'authenticator app', pending);
  if (state.session !== identity.session.id) throw new Problem('sign_in_expired');
  const secret = new Secret(Buffer.from(state.secret, 'base64url'));
  const now = vault.world.now();
  const step = totpStepOf(secret, digitsOf(code), now);
  if (step === undefined) {
    const message = 'the code is wrong; check the clock of the device';
    throw new Problem('invalid_request', {
      detail: `code: ${message}.`,
      errors: [{ path: 'code', message }],
    });
  }
  return vault.db.write(async (writer) => {
    await useState(writer, state, now);
    const person = await requireOwn(vault, writer, identity);
    const { id: administrator_id } = person.row;
    await deleteAuthenticatorApp(writer, administrator_id);
    const id = await insertAuthenticatorApp(writer, { administrator_id, last_step: step, created_at: now });
    const sealed = await sealFor(vault, writer, authenticatorSecretOwner(id), secret);
    await setAuthenticatorSecret(writer, id, sealed);
    const codes = await drawRecoveryCodes(vault, writer, administrator_id);
    const detail = { replaced: person.factors.app !== undefined, recovery_codes: codes.length };
    const change = { action: 'administrator.totp_create', detail, now } as const;
    await recordOwnChange(writer, actor, person, identity, change);
    return codes;
  });
}

/** Removes one's own app. Throws `second_factor_not_found` and `last_second_factor`. */
export async function removeApp(
  vault: FactorContext,
  actor: Actor,
  identity: AdministratorIdentity,
  isRequired: boolean,
): Promise<void> {
  await vault.db.write(async (writer) => {
    const person = await requireOwn(vault, writer, identity);
    if (person.factors.app === undefined) throw new Problem('second_factor_not_found');
    refuseTheLastFactor({ ...person.factors, app: undefined }, isRequired);
    await deleteAuthenticatorApp(writer, person.row.id);
    const change = { action: 'administrator.totp_delete', now: vault.world.now() } as const;
    await recordOwnChange(writer, actor, person, identity, change);
  });
}

/**
 * Uses up the code in the transaction of a sign-in: that of the app, whose time step no code before it can follow, or a
 * recovery code. Undefined if it is wrong or was used. The caller records the factors after a recovery code.
 */
export async function takeCode(
  vault: FactorContext,
  writer: Writer,
  { row, factors }: Person,
  code: Secret<string>,
): Promise<'totp' | 'recovery_code' | undefined> {
  const now = vault.world.now();
  if (factors.app !== undefined) {
    const { id, sealed_secret } = factors.app;
    const secret = openFor(vault, authenticatorSecretOwner(id), sealed_secret);
    const step = totpStepOf(secret, digitsOf(code), now);
    if (step !== undefined) return (await takeStep(writer, id, { step, now })) ? 'totp' : undefined;
  }
  const recovery = findRecoveryCode(requireIntegrity(writer), row.id, factors, code.expose());
  if (recovery === undefined) return undefined;
  return (await takeRecoveryCode(writer, recovery)) ? 'recovery_code' : undefined;
}

/** Apps show codes in groups. */
function digitsOf(code: Secret<string>): string {
  return code.expose().replaceAll(/\s/g, '');
}
