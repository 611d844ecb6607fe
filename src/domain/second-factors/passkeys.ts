/** Registers, renames and removes passkeys of a person. Authenticators verify their user, and attest nothing. */
import type { PublicKeyCredentialCreationOptionsJSON } from '@simplewebauthn/server';
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import { toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import {
  deletePasskey,
  findPasskey,
  hasPasskeys,
  insertPasskey,
  setPasskeyName,
} from '../../db/tables/access/passkeys.ts';
import type { AdministratorIdentity } from '../access/identity.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext } from '../contexts.ts';
import {
  type PasskeyView,
  type Person,
  passkeyView,
  recordOwnChange,
  refuseTheLastFactor,
  requireOwn,
} from './own-factors.ts';
import type { CreatePasskeyInput, RegistrationResponse } from './passkey-inputs.ts';
import type { RelyingParty } from './relying-party.ts';
import { type FactorContext, openState, sealState, stateLifetime, useState } from './sealed-state.ts';

/** Passkeys per person. */
const maxPasskeys = 20;

/** In bytes, twice what WebAuthn §13.4.3 asks for. */
export const challengeSize = 32;

type PendingPasskey = { readonly session: number; readonly challenge: string };

/** What `navigator.credentials.create` takes, and the state for `addPasskey`. */
export type NewPasskey = {
  readonly pending: Secret<string>;
  readonly options: PublicKeyCredentialCreationOptionsJSON;
};

/** Loaded at the first use: most starts and commands need no passkeys. */
export const webAuthn = () => import('@simplewebauthn/server');

/** Whether the sign-in page has a use for passkeys. */
export async function anyoneHasPasskeys({ db }: DatabaseContext): Promise<boolean> {
  return hasPasskeys(db.reader);
}

/** Begins to register a passkey of the signed-in person. Throws `invalid_request` if they have too many. */
export async function beginPasskey(
  vault: FactorContext,
  identity: AdministratorIdentity,
  party: RelyingParty,
): Promise<NewPasskey> {
  const person = await requireOwn(vault, vault.db.reader, identity);
  refuseTooMany(person);
  const challenge = vault.world.randomBytes(challengeSize);
  const { generateRegistrationOptions } = await webAuthn();
  const options = await generateRegistrationOptions({
    rpName: 'Certificate Vault',
    rpID: party.id,
    userName: person.row.name,
    userDisplayName: person.row.name,
    userID: Uint8Array.from(userHandle(requireIntegrity(vault.db), person.row.id)),
    challenge: Uint8Array.from(challenge),
    timeout: stateLifetime,
    attestationType: 'none',
    excludeCredentials: person.factors.passkeys.map(({ credential_id }) => ({
      id: credential_id.toString('base64url'),
    })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
  const content: PendingPasskey = {
    session: identity.session.id,
    challenge: challenge.toString('base64url'),
  };
  const { sealed } = await sealState(vault, 'passkey registration', content);
  return { pending: sealed, options };
}

/**
 * Stores the passkey that the browser created. Throws `sign_in_expired` for a registration of another session, or one
 * that was used or has expired, `invalid_request` for a response that does not belong to it, and `passkey_exists`.
 */
export async function addPasskey(
  vault: FactorContext,
  actor: Actor,
  identity: AdministratorIdentity,
  party: RelyingParty,
  { pending, name, response }: CreatePasskeyInput,
): Promise<PasskeyView> {
  const state = openState<PendingPasskey>(vault, 'passkey registration', pending);
  if (state.session !== identity.session.id) throw new Problem('sign_in_expired');
  const credential = await verified(response, state.challenge, party);
  const now = vault.world.now();
  return vault.db.write(async (writer) => {
    await useState(writer, state, now);
    const person = await requireOwn(vault, writer, identity);
    refuseTooMany(person);
    if ((await findPasskey(writer, credential.id)) !== undefined) throw new Problem('passkey_exists');
    const row = await insertPasskey(writer, {
      administrator_id: person.row.id,
      name,
      credential_id: credential.id,
      public_key: credential.publicKey,
      sign_count: credential.counter,
      transports: toJson(response.response.transports),
      created_at: now,
    });
    const change = { action: 'administrator.passkey_create', detail: { id: row.id, name }, now } as const;
    await recordOwnChange(writer, actor, person, identity, change);
    return passkeyView(row);
  });
}

/** Gives one's own passkey another name. Throws `second_factor_not_found`. */
export async function renamePasskey(
  vault: FactorContext,
  actor: Actor,
  identity: AdministratorIdentity,
  { id, name }: { readonly id: number; readonly name: string },
): Promise<PasskeyView> {
  return vault.db.write(async (writer) => {
    const person = await requireOwn(vault, writer, identity);
    const passkey = ownPasskey(person, id);
    await setPasskeyName(writer, id, name);
    const resource = `administrator:${person.row.name}`;
    const detail = { id, name, before: { name: passkey.name } };
    const event = { actor, action: 'administrator.passkey_update', resource, detail } as const;
    record(writer, event, vault.world.now());
    return passkeyView({ ...passkey, name });
  });
}

/** Removes one's own passkey. Throws `second_factor_not_found` and `last_second_factor`. */
export async function removePasskey(
  vault: FactorContext,
  actor: Actor,
  identity: AdministratorIdentity,
  id: number,
  isRequired: boolean,
): Promise<void> {
  await vault.db.write(async (writer) => {
    const person = await requireOwn(vault, writer, identity);
    const { name } = ownPasskey(person, id);
    const { passkeys, app } = person.factors;
    refuseTheLastFactor({ passkeys: passkeys.filter((other) => other.id !== id), app }, isRequired);
    await deletePasskey(writer, id);
    const [detail, now] = [{ id, name }, vault.world.now()];
    const change = { action: 'administrator.passkey_delete', detail, now } as const;
    await recordOwnChange(writer, actor, person, identity, change);
  });
}

/** The random-looking id of a person in their passkeys, which says nothing about them (WebAuthn §14.6.1). */
export function userHandle(integrity: Integrity, administratorId: number): Buffer {
  return integrity.tag('passkey user', String(administratorId));
}

function ownPasskey({ factors }: Person, id: number) {
  const passkey = factors.passkeys.find((known) => known.id === id);
  if (passkey === undefined) throw new Problem('second_factor_not_found');
  return passkey;
}

function refuseTooMany({ factors }: Person): void {
  if (factors.passkeys.length < maxPasskeys) return;
  throw new Problem('invalid_request', {
    detail: `A person has at most ${maxPasskeys} passkeys.`,
    hint: 'Remove one that you no longer use.',
  });
}

/** The credential in a response. Throws `invalid_request` unless it answers this challenge at this origin. */
async function verified(response: RegistrationResponse, challenge: string, party: RelyingParty) {
  try {
    await refuseAttestation(response.response.attestationObject);
    const { verifyRegistrationResponse } = await webAuthn();
    const { registrationInfo } = await verifyRegistrationResponse({
      response: { ...response, clientExtensionResults: {} } as never,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
    });
    if (registrationInfo === undefined) throw new Error('the signature is not valid');
    const { id, publicKey, counter } = registrationInfo.credential;
    return { id: Buffer.from(id, 'base64url'), publicKey: Buffer.from(publicKey), counter };
  } catch (error) {
    const message = 'the vault rejected the passkey';
    throw new Problem('invalid_request', {
      detail: `response: ${message}.`,
      errors: [{ path: 'response', message }],
      cause: error,
    });
  }
}

/**
 * Throws for a statement with certificates, which the vault did not request: the library would load their revocation
 * lists from wherever they say.
 */
async function refuseAttestation(attestationObject: string): Promise<void> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers');
  const decoded = decodeAttestationObject(Uint8Array.from(Buffer.from(attestationObject, 'base64url')));
  const format = decoded.get('fmt');
  const isOwn = format === 'packed' && decoded.get('attStmt').get('x5c') === undefined;
  if (format !== 'none' && !isOwn) throw new Error('an attestation was not requested');
}
