/** Sign-in with name and password. Unknown names and wrong passwords take the same path and get the same answer. */

import { z } from 'zod';
import { requireIntegrity } from '../../base/integrity.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { sessionTokenCreator } from '../../crypto/secrets/session-token.ts';
import type { Recorded } from '../../db/audit/row-records.ts';
import { administratorFits } from '../../db/audit/row-tags.ts';
import {
  type AdministratorRow,
  findAdministrator,
  setLastSignedIn,
  setPasswordHash,
} from '../../db/tables/access/administrators.ts';
import type { Actor } from '../audit/audit.ts';
import type { LoggedContext } from '../contexts.ts';
import type { Meter } from '../health/meter.ts';
import { administratorNamePattern, typedPassword } from './administrator-inputs.ts';
import { replacePassword } from './administrators.ts';
import type { AdministratorIdentity, SignedIn, Visitor } from './identity.ts';
import { KnownPlaces } from './known-places.ts';
import type { Passwords } from './passwords.ts';
import type { RefusalCounts, Refusals } from './refusals.ts';
import type { Sessions } from './sessions.ts';
import { type AddressStanding, type Attempt, SignInBackoff } from './sign-in-backoff.ts';

export const signInInput = z.strictObject({
  name: z
    .string()
    .min(1, 'name is missing')
    .max(256, 'a name has at most 256 characters')
    .meta({ pattern: administratorNamePattern }),
  password: typedPassword,
});

export type SignInInput = z.output<typeof signInInput>;

export const changePasswordInput = z.strictObject({ current: typedPassword, new: typedPassword });

export type ChangePasswordInput = z.output<typeof changePasswordInput>;

type Checked = { readonly row: AdministratorRow; readonly attempt: Attempt };

/** The password was right, and the person has a second factor (domain/second-factors/second-step.ts). */
export type FirstStep = {
  readonly row: AdministratorRow;
  /** The hash of the password at today's cost, if the stored one is older. */
  readonly rehashed: string | undefined;
};

/** Signs people in, records or counts refusals, and counts them for metrics. */
export type SignInContext = LoggedContext & { readonly refusals: Refusals; readonly meter: Meter };

export class SignIn {
  readonly #vault: SignInContext;
  readonly #refusalCounts: RefusalCounts;
  readonly #places = new KnownPlaces();
  readonly passwords: Passwords;
  readonly sessions: Sessions;
  readonly backoff: SignInBackoff;

  constructor(vault: SignInContext, passwords: Passwords, sessions: Sessions, refusalCounts: RefusalCounts) {
    this.#vault = vault;
    this.#refusalCounts = refusalCounts;
    this.passwords = passwords;
    this.sessions = sessions;
    this.backoff = new SignInBackoff(vault.world);
  }

  /**
   * Creates a session, or returns the first step of people with a second factor. Throws `unauthenticated`, the same for
   * every failure, and `rate_limited`.
   */
  async signIn({ name, password }: SignInInput, visitor: Visitor): Promise<SignedIn | FirstStep> {
    const { db, world } = this.#vault;
    const { row, attempt } = await this.#check(
      name,
      password,
      visitor.actor,
      await this.#standing(name, visitor.actor),
      wrongCredentials,
    );
    try {
      const isOld = this.passwords.needsRehash(row.password_hash);
      const rehashed = isOld ? await this.passwords.hash(password) : undefined;
      if (row.factors !== null) {
        // Neither failed nor succeeded: a right password must not reset the count of wrong codes.
        attempt.withdrawn();
        return { row, rehashed };
      }
      const createToken = await sessionTokenCreator();
      const signedIn = await db.write(async (writer) => {
        // The administrator may have been deleted, or the password changed, meanwhile.
        const now = await findAdministrator(writer, name);
        // biome-ignore lint/plugin/compared-secrets: two hashes from the database.
        if (now?.password_hash !== row.password_hash || now.factors !== null) throw wrongCredentials();
        if (rehashed !== undefined) await setPasswordHash(writer, row.id, rehashed);
        await setLastSignedIn(writer, row.id, world.now());
        return this.sessions.begin(writer, row, visitor, createToken);
      });
      attempt.succeeded();
      return signedIn;
    } catch (error) {
      attempt.withdrawn();
      throw error;
    }
  }

  /**
   * Changes the administrator's own password and ends their other sessions. Throws `invalid_request` if the current
   * password is wrong or the new one is not acceptable, `oidc_administrator` and `rate_limited`.
   */
  async changePassword(
    actor: Actor,
    { name, session, signIn }: AdministratorIdentity,
    input: ChangePasswordInput,
  ): Promise<void> {
    const { db, world } = this.#vault;
    if (signIn === 'oidc') throw new Problem('oidc_administrator');
    const { row, attempt } = await this.#check(name, input.current, actor, 'known', wrongCurrent);
    attempt.succeeded();
    const hash = await this.passwords.choose(name, input.new, 'new');
    await db.write(async (writer) => {
      const now = await findAdministrator(writer, name);
      // biome-ignore lint/plugin/compared-secrets: two hashes from the database.
      if (now?.password_hash !== row.password_hash) throw wrongCurrent();
      await replacePassword(writer, actor, row, { hash, keptSession: session.id, now: world.now() });
    });
  }

  /**
   * Checks the password of someone who is signed in, for what a stolen session must not do. Throws `invalid_request` if
   * it is wrong, `oidc_administrator` and `rate_limited`.
   */
  async confirmPassword(
    actor: Actor,
    { name, signIn }: AdministratorIdentity,
    password: Secret<string>,
  ): Promise<void> {
    if (signIn === 'oidc') throw new Problem('oidc_administrator');
    const wrong = () => wrongPassword('password', 'the password is wrong');
    (await this.#check(name, password, actor, 'known', wrong)).attempt.succeeded();
  }

  /** Begins another attempt of this administrator, after a right password. Throws `rate_limited`. */
  async beginAttempt(name: string, actor: Actor): Promise<Attempt> {
    return this.backoff.begin(name, actor.ip, await this.#standing(name, actor));
  }

  async #standing(name: string, { ip }: Actor): Promise<AddressStanding> {
    return (await this.#places.has(this.#vault.db.reader, name, ip)) ? 'known' : 'stranger';
  }

  /** An administrator without a password or without a valid integrity tag counts as unknown. */
  #authentic(row: (AdministratorRow & Recorded) | undefined): AdministratorRow | undefined {
    const { db, log } = this.#vault;
    if (row === undefined || row.oidc_subject !== null) return undefined;
    if (administratorFits(requireIntegrity(db), row)) return row;
    const fields = { administrator: row.name };
    log.error(fields, 'administrator refused: the database row was modified outside the vault');
    return undefined;
  }

  /** Checks a password. Records failures without the typed name, which may be a password. */
  async #check(
    name: string,
    password: Secret<string>,
    actor: Actor,
    standing: AddressStanding,
    refusal: () => Problem,
  ): Promise<Checked> {
    const { db, meter } = this.#vault;
    const attempt = this.backoff.begin(name, actor.ip, standing);
    const origin = standing === 'known' ? standing : { address: actor.ip };
    let row: AdministratorRow | undefined;
    try {
      row = this.#authentic(await findAdministrator(db.reader, name));
      if ((await this.passwords.matches(password, row?.password_hash, origin)) && row !== undefined)
        return { row, attempt };
    } catch (error) {
      attempt.withdrawn();
      throw error;
    }
    meter.authenticationFailed('password');
    const reason = row === undefined ? 'unknown name' : 'wrong password';
    await this.recordRefusal(actor, `administrator:${row?.name ?? 'unknown'}`, reason);
    throw refusal();
  }

  /**
   * Records a failed attempt, or counts it after the first hundred of its kind in an hour. `subject` is nothing that
   * was typed.
   */
  async recordRefusal(
    actor: Actor,
    subject: string,
    reason: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const refusal = {
      actor,
      action: 'session.refuse',
      subject,
      target: subject,
      detail: { reason, ...more },
    } as const;
    await this.#vault.refusals.record(refusal, this.#refusalCounts);
  }
}

/** The error for every wrong name or password. */
export function wrongCredentials(): Problem {
  return new Problem('unauthenticated', { detail: 'Wrong name or password.' });
}

function wrongCurrent(): Problem {
  return wrongPassword('current', 'the current password is wrong');
}

function wrongPassword(path: string, message: string): Problem {
  return new Problem('invalid_request', { detail: `${path}: ${message}.`, errors: [{ path, message }] });
}
