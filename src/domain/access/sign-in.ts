/** Sign-in with name and password. Unknown names and wrong passwords take the same path and get the same answer. */

import { z } from 'zod';
import { requireIntegrity } from '../../base/integrity.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { sessionTokenCreator } from '../../crypto/secrets/session-token.ts';
import { listEventsOfAction } from '../../db/audit/audit-events.ts';
import type { Recorded } from '../../db/audit/row-records.ts';
import { administratorFits } from '../../db/audit/row-tags.ts';
import type { Reader } from '../../db/database.ts';
import {
  type AdministratorRow,
  findAdministrator,
  setLastSignedIn,
  setPasswordHash,
} from '../../db/tables/access/administrators.ts';
import { neighborhood } from '../../net/ip-network.ts';
import type { Actor } from '../audit/audit.ts';
import { boundedCache } from '../cache/bounded-cache.ts';
import type { LoggedContext } from '../contexts.ts';
import type { Meter } from '../health/meter.ts';
import { administratorNamePattern, replacePassword, typedPassword } from './administrators.ts';
import type { AdministratorIdentity } from './identity.ts';
import type { Passwords } from './passwords.ts';
import type { RefusalCounts, Refusals } from './refusals.ts';
import type { Sessions, SignedIn, Visitor } from './sessions.ts';
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

  /** Creates a session. Throws `unauthenticated`, the same for every failure, and `rate_limited`. */
  async signIn({ name, password }: SignInInput, visitor: Visitor): Promise<SignedIn> {
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
      const createToken = await sessionTokenCreator();
      const signedIn = await db.write(async (writer) => {
        // The administrator may have been deleted, or the password changed, meanwhile.
        const now = await findAdministrator(writer, name);
        // biome-ignore lint/plugin/compared-secrets: two hashes from the database.
        if (now?.password_hash !== row.password_hash) throw wrongCredentials();
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

/** Sign-ins read after a start. Only successful ones are recorded as such, so attackers cannot add any. */
const maxRead = 1000;

/**
 * The networks from which administrators have signed in before. They come from the audit log, so that they survive
 * restarts and are the same in all processes.
 */
class KnownPlaces {
  readonly #places = boundedCache<string, true>(maxRead);
  #readTo = 0;

  /** Whether this administrator has signed in from the network of this address before. */
  async has(reader: Reader, name: string, address: string | undefined): Promise<boolean> {
    const signIns = await listEventsOfAction(reader, 'session.create', this.#readTo, maxRead);
    for (const { id, actor, ip } of signIns.toReversed()) {
      this.#readTo = Math.max(this.#readTo, id);
      if (ip !== null) this.#places.set(placeOf(actor, ip), true);
    }
    return address !== undefined && this.#places.get(placeOf(`admin:${name}`, address)) === true;
  }
}

/** Names are compared without case. */
function placeOf(actor: string, address: string): string {
  return `${actor.toLowerCase()} ${neighborhood(address)}`;
}

function wrongCredentials(): Problem {
  return new Problem('unauthenticated', { detail: 'Wrong name or password.' });
}

function wrongCurrent(): Problem {
  const message = 'the current password is wrong';
  return new Problem('invalid_request', {
    detail: `current: ${message}.`,
    errors: [{ path: 'current', message }],
  });
}
