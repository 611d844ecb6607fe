/**
 * The second step of a sign-in with a password, for people with a second factor. Between the steps there is no session:
 * the browser keeps a sealed text that opens nothing but the second step.
 */

import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { sha256 } from '../../base/sha256.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { sameBytes } from '../../crypto/secrets/constant-time.ts';
import { type CreateSessionToken, sessionTokenCreator } from '../../crypto/secrets/session-token.ts';
import { recordFactors } from '../../db/audit/factor-digest.ts';
import type { Writer } from '../../db/database.ts';
import { setLastSignedIn, setPasswordHash } from '../../db/tables/access/administrators.ts';
import type { SignedIn, Visitor } from '../access/identity.ts';
import { type FirstStep, type SignIn, type SignInContext, wrongCredentials } from '../access/sign-in.ts';
import { takeCode } from './authenticator-apps.ts';
import { findPerson } from './own-factors.ts';
import { type FactorContext, openState, type State, sealState, useState } from './sealed-state.ts';

/** What a person can use in the second step. */
export const secondSteps = ['totp', 'recovery_code', 'passkey'] as const;

/** The first step, for the browser. */
export type NextStep = {
  readonly sealed: Secret<string>;
  readonly methods: readonly (typeof secondSteps)[number][];
  readonly expiresAt: string;
};

type PendingStep = {
  readonly administratorId: number;
  readonly name: string;
  /** SHA-256 of the hash of the password: a new password ends the sign-in. */
  readonly password: string;
  readonly rehashed: string | undefined;
};

type StepContext = FactorContext & SignInContext;

export class SecondStep {
  readonly #vault: StepContext;
  readonly #signIn: SignIn;

  constructor(vault: StepContext, signIn: SignIn) {
    this.#vault = vault;
    this.#signIn = signIn;
  }

  /** The next step after a right password. Throws `unauthenticated` if the factors were modified outside the vault. */
  async begin({ row, rehashed }: FirstStep): Promise<NextStep> {
    const person = await findPerson(this.#vault, this.#vault.db.reader, row.name);
    if (person?.row.id !== row.id) throw wrongCredentials();
    const { passkeys, app, recoveryCodes } = person.factors;
    const content: PendingStep = {
      administratorId: row.id,
      name: row.name,
      password: sha256(row.password_hash).toString('hex'),
      rehashed,
    };
    const { sealed, state } = await sealState(this.#vault, 'first step', content);
    const has = {
      totp: app !== undefined,
      recovery_code: recoveryCodes.length > 0,
      passkey: passkeys.length > 0,
    };
    return {
      sealed,
      methods: secondSteps.filter((method) => has[method]),
      expiresAt: formatTimestamp(state.expiresAt),
    };
  }

  /**
   * Signs in with a code of the app or a recovery code, in the browser that returned `sealed`. Throws `unauthenticated`
   * for a code that is wrong or was used, `sign_in_expired` and `rate_limited`.
   */
  async finish(code: Secret<string>, sealed: string | undefined, visitor: Visitor): Promise<SignedIn> {
    const state = openState<PendingStep>(this.#vault, 'first step', sealed);
    const attempt = await this.#signIn.beginAttempt(state.name, visitor.actor);
    try {
      const createToken = await sessionTokenCreator();
      const signedIn = await this.#vault.db.write((writer) =>
        this.#admit(writer, state, code, visitor, createToken),
      );
      attempt.succeeded();
      return signedIn;
    } catch (error) {
      if (!(error instanceof Problem)) attempt.withdrawn();
      else if (error.code === 'unauthenticated') {
        this.#vault.meter.authenticationFailed('second_factor');
        await this.#signIn.recordRefusal(visitor.actor, `administrator:${state.name}`, 'wrong code');
      }
      throw error;
    }
  }

  async #admit(
    writer: Writer,
    state: PendingStep & State,
    code: Secret<string>,
    visitor: Visitor,
    createToken: CreateSessionToken,
  ): Promise<SignedIn> {
    const now = this.#vault.world.now();
    const person = await findPerson(this.#vault, writer, state.name);
    // The factors may have been cleared, or the password changed, since the first step.
    if (person?.row.factors == null || !isOf(state, person.row)) throw new Problem('sign_in_expired');
    await useState(writer, state, now);
    const secondFactor = await takeCode(this.#vault, writer, person, code);
    if (secondFactor === undefined) throw wrongCode();
    const { row } = person;
    if (state.rehashed !== undefined) await setPasswordHash(writer, row.id, state.rehashed);
    if (secondFactor === 'recovery_code') await recordFactors(writer, row.id);
    await setLastSignedIn(writer, row.id, now);
    return this.#signIn.sessions.begin(writer, row, { ...visitor, secondFactor }, createToken);
  }
}

/** Whether the state was sealed for this administrator with this password. */
function isOf(
  { administratorId, password }: PendingStep,
  { id, password_hash }: { readonly id: number; readonly password_hash: string },
): boolean {
  return administratorId === id && sameBytes(Buffer.from(password, 'hex'), sha256(password_hash));
}

function wrongCode(): Problem {
  return new Problem('unauthenticated', { detail: 'Wrong code, or a code that was used before.' });
}
