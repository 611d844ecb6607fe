/**
 * Sign-in by passkey, without a name: the authenticator knows whose it is, and has verified its user, so it counts as
 * both factors.
 */
import type { PublicKeyCredentialRequestOptionsJSON } from '@simplewebauthn/server';
import { requireIntegrity } from '../../base/integrity.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { sameBytes } from '../../crypto/secrets/constant-time.ts';
import { sessionTokenCreator } from '../../crypto/secrets/session-token.ts';
import { setLastSignedIn } from '../../db/tables/access/administrators.ts';
import { findPasskey, type PasskeyRow, takeSignCount } from '../../db/tables/access/passkeys.ts';
import type { SignedIn, Visitor } from '../access/identity.ts';
import type { SignIn, SignInContext } from '../access/sign-in.ts';
import { findPerson } from './own-factors.ts';
import type { PasskeySignInInput } from './passkey-inputs.ts';
import { challengeSize, userHandle, webAuthn } from './passkeys.ts';
import type { RelyingParty } from './relying-party.ts';
import { type FactorContext, openState, sealState, stateLifetime, useState } from './sealed-state.ts';

type PasskeyContext = FactorContext & SignInContext;

type PendingSignIn = { readonly challenge: string };

/** Why a passkey was not accepted, for the audit log; callers are told the same of all. */
class Refused extends Error {
  readonly reason: string;
  /** Whose passkey it claims to be. */
  readonly person: string | undefined;
  readonly facts: Readonly<Record<string, string>>;

  constructor(reason: string, person?: string, facts: Readonly<Record<string, string>> = {}) {
    super(reason);
    this.reason = reason;
    this.person = person;
    this.facts = facts;
  }
}

/** At most this much of an error goes into the audit log. */
const maxRecorded = 200;

/** What `navigator.credentials.get` takes, the same for everyone, and the state for the cookie of the browser. */
export async function beginPasskeySignIn(
  vault: FactorContext,
  party: RelyingParty,
): Promise<{ readonly sealed: Secret<string>; readonly options: PublicKeyCredentialRequestOptionsJSON }> {
  const challenge = vault.world.randomBytes(challengeSize);
  const { generateAuthenticationOptions } = await webAuthn();
  const options = await generateAuthenticationOptions({
    rpID: party.id,
    challenge: Uint8Array.from(challenge),
    timeout: stateLifetime,
    userVerification: 'required',
  });
  const content: PendingSignIn = { challenge: challenge.toString('base64url') };
  const { sealed } = await sealState(vault, 'passkey sign-in', content);
  return { sealed, options };
}

/**
 * Signs in the person of the passkey, in the browser that returned `sealed`. Throws `unauthenticated`, the same for
 * every passkey that is not accepted, `sign_in_expired` and `rate_limited`.
 */
export async function finishPasskeySignIn(
  vault: PasskeyContext,
  signIn: SignIn,
  party: RelyingParty,
  { response, sealed }: { readonly response: PasskeySignInInput; readonly sealed: string | undefined },
  visitor: Visitor,
): Promise<SignedIn> {
  const state = openState<PendingSignIn>(vault, 'passkey sign-in', sealed);
  const attempt = signIn.backoff.begin(undefined, visitor.actor.ip, 'stranger');
  try {
    const { passkey, name } = await presented(vault, response);
    const count = await verifiedCount(response, state.challenge, party, { passkey, name });
    const createToken = await sessionTokenCreator();
    const now = vault.world.now();
    const signedIn = await vault.db.write(async (writer) => {
      await useState(writer, state, now);
      // The passkey may have been removed meanwhile.
      const person = await findPerson(vault, writer, name);
      const isTheirs = person?.factors.passkeys.some(({ id }) => id === passkey.id);
      if (person === undefined || isTheirs !== true) throw new Refused('passkey removed', name);
      if (!(await takeSignCount(writer, passkey.id, { count, now }))) {
        throw new Refused('signature counter did not grow', name);
      }
      await setLastSignedIn(writer, person.row.id, now);
      const using = { ...visitor, secondFactor: 'passkey' } as const;
      return signIn.sessions.begin(writer, person.row, using, createToken);
    });
    attempt.succeeded();
    return signedIn;
  } catch (error) {
    if (!(error instanceof Refused)) {
      attempt.withdrawn();
      throw error;
    }
    vault.meter.authenticationFailed('passkey');
    const subject = `administrator:${error.person ?? 'unknown'}`;
    await signIn.recordRefusal(visitor.actor, subject, error.reason, error.facts);
    throw new Problem('unauthenticated', { detail: 'This passkey was not accepted.' });
  }
}

type Presented = { readonly passkey: PasskeyRow; readonly name: string };

/** The registered passkey with this id, of a person whose rows are as the vault wrote them. Throws Refused. */
async function presented(vault: PasskeyContext, { id, response }: PasskeySignInInput): Promise<Presented> {
  const { db } = vault;
  const found = await findPasskey(db.reader, Buffer.from(id, 'base64url'));
  if (found === undefined) throw new Refused('unknown passkey');
  const person = await findPerson(vault, db.reader, found.person);
  const passkey = person?.factors.passkeys.find((known) => known.id === found.id);
  if (person === undefined || passkey === undefined) throw new Refused('unknown passkey');
  const { name, id: administratorId } = person.row;
  const handle = userHandle(requireIntegrity(db), administratorId);
  if (!sameBytes(Buffer.from(response.userHandle, 'base64url'), handle)) {
    throw new Refused('passkey of another person', name);
  }
  return { passkey, name };
}

/** The signature counter of a valid assertion (WebAuthn §7.2). Throws Refused. */
async function verifiedCount(
  response: PasskeySignInInput,
  challenge: string,
  party: RelyingParty,
  { passkey, name }: Presented,
): Promise<number> {
  try {
    const { verifyAuthenticationResponse } = await webAuthn();
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: { ...response, clientExtensionResults: {} },
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
      credential: {
        id: passkey.credential_id.toString('base64url'),
        publicKey: Uint8Array.from(passkey.public_key),
        counter: passkey.sign_count,
      },
    });
    if (verified) return authenticationInfo.newCounter;
  } catch (error) {
    // The library throws for everything that is wrong with what the browser sent.
    const message = error instanceof Error ? error.message : String(error);
    throw new Refused('passkey not valid', name, { error: message.slice(0, maxRecorded) });
  }
  throw new Refused('passkey not valid', name, { error: 'the signature is not valid' });
}
