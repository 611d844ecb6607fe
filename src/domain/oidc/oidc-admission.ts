/**
 * Admits people whom the OpenID Connect provider has authenticated, however they signed in. Issuer and subject identify
 * a person, never a name or an email address. The account is created at the first sign-in, and each one sets its role
 * from the claims.
 */
import { requireIntegrity } from '../../base/integrity.ts';
import { parseJsonOr } from '../../base/json.ts';
import type { Role } from '../../base/role.ts';
import { type CreateSessionToken, sessionTokenCreator } from '../../crypto/secrets/session-token.ts';
import { administratorFits } from '../../db/audit/row-tags.ts';
import type { Writer } from '../../db/database.ts';
import {
  type AdministratorRow,
  findAdministrator,
  findOidcAdministrator,
  insertAdministrator,
  setLastSignedIn,
  setRights,
} from '../../db/tables/access/administrators.ts';
import { deleteOtherSessions } from '../../db/tables/access/sessions.ts';
import { labelsText } from '../../db/tables/certificates/certificate-labels.ts';
import type { SignedIn, Visitor } from '../access/identity.ts';
import { confinementText } from '../access/profile-confinement.ts';
import { recordEndedSessions } from '../access/sessions.ts';
import type { SignIn } from '../access/sign-in.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { LogContext, SecretsContext } from '../contexts.ts';
import { nameIn, profilesIn, reachIn, roleIn, roleValuesIn } from './claims.ts';
import type { Authenticated } from './oidc-provider.ts';
import type { ProviderSettings } from './provider-settings.ts';
import { OidcRefusal } from './refusal.ts';

/** Marks a response of the provider as used; returns false if it was used before. */
export type UseOnce = (writer: Writer) => Promise<boolean>;

/** At most this much of a claim goes into the audit log. */
const maxRecorded = 300;

export class OidcAdmission {
  readonly #vault: SecretsContext & LogContext;
  readonly #signIn: SignIn;
  readonly #settings: ProviderSettings;

  constructor(vault: SecretsContext & LogContext, signIn: SignIn, settings: ProviderSettings) {
    this.#vault = vault;
    this.#signIn = signIn;
    this.#settings = settings;
  }

  /**
   * The session of a person with a role. `use` marks the response of the provider as used, in the same transaction, and
   * returns false if it was used before. Throws OidcRefusal.
   */
  async admit(person: Authenticated, use: UseOnce, visitor: Visitor): Promise<SignedIn> {
    const { roles } = this.#settings;
    const role = roleIn(person.claims, roles);
    const reach = role === undefined ? undefined : reachIn(person.claims, this.#settings, role);
    const profiles = role === undefined ? undefined : profilesIn(person.claims, this.#settings, role);
    if (role === undefined || reach === undefined || profiles === undefined) {
      await this.#endSessions(person, visitor.actor);
      const values = JSON.stringify(roleValuesIn(person.claims, roles)).slice(0, maxRecorded);
      const facts = { oidc_subject: person.subject, claim: roles.claim, values };
      const missing = role === undefined ? 'role' : reach === undefined ? 'reach' : 'profiles';
      throw new OidcRefusal('not_permitted', `no ${missing} for this person`, facts);
    }
    const createToken = await sessionTokenCreator();
    return this.#vault.db.write((writer) =>
      this.#begin(writer, { ...person, role, reach, profiles }, { use, visitor, createToken }),
    );
  }

  async #begin(
    writer: Writer,
    person: Permitted,
    { use, visitor, createToken }: BeginsWith,
  ): Promise<SignedIn> {
    if (!(await use(writer))) throw new OidcRefusal('expired', 'response used before');
    const row = await this.#account(writer, person, visitor.actor);
    await setLastSignedIn(writer, row.id, this.#vault.world.now());
    return this.#signIn.sessions.begin(writer, row, { ...visitor, oidcSid: person.sid }, createToken);
  }

  /** The account of the person with the rights of the claims; a new one at the first sign-in. */
  async #account(
    writer: Writer,
    { subject, claims, ...given }: Permitted,
    from: Actor,
  ): Promise<AdministratorRow> {
    const now = this.#vault.world.now();
    const { issuer } = this.#settings;
    const known = await findOidcAdministrator(writer, { issuer, subject });
    const facts = { oidc_subject: subject };
    const { role, reach, profiles } = given;
    const rights = { role, reach: labelsText(reach), profiles: confinementText(profiles) };
    if (known === undefined) {
      const name = nameIn(claims);
      if (name === undefined) throw new OidcRefusal('invalid', 'no claim is valid as a name', facts);
      const other = await findAdministrator(writer, name);
      if (other !== undefined) {
        throw new OidcRefusal('name_taken', 'name of another administrator', { ...facts, name: other.name });
      }
      const oidc = { oidc_issuer: issuer, oidc_subject: subject };
      const row = await insertAdministrator(writer, {
        ...{ name, ...rights, password_hash: '', created_at: now },
        ...oidc,
      });
      const [actor, resource] = [{ ...from, name: `admin:${name}` }, `administrator:${name}`];
      record(
        writer,
        { actor, action: 'administrator.create', resource, detail: { ...shown(given), ...oidc } },
        now,
      );
      return row;
    }
    if (!administratorFits(requireIntegrity(writer), known)) {
      this.#vault.log.error(
        { administrator: known.name },
        'administrator refused: the database row was modified outside the vault',
      );
      throw new OidcRefusal('invalid', 'database row modified outside the vault', facts);
    }
    const isSame = known.role === role && known.reach === rights.reach && known.profiles === rights.profiles;
    if (isSame) return known;
    await setRights(writer, known.id, rights);
    const [actor, resource] = [{ ...from, name: 'system' }, `administrator:${known.name}`];
    const before = shown({
      role: known.role,
      reach: parseJsonOr(known.reach, []),
      profiles: parseJsonOr(known.profiles, []),
    });
    const detail = { ...shown(given), before, oidc_issuer: issuer };
    record(writer, { actor, action: 'administrator.update', resource, detail }, now);
    return { ...known, ...rights };
  }

  /** Ends the sessions of someone who has lost their role at the provider. */
  async #endSessions({ subject }: Authenticated, from: Actor): Promise<void> {
    const { db, world } = this.#vault;
    const { issuer } = this.#settings;
    if ((await findOidcAdministrator(db.reader, { issuer, subject })) === undefined) return;
    await db.write(async (writer) => {
      const row = await findOidcAdministrator(writer, { issuer, subject });
      if (row === undefined) return;
      const ended = await deleteOtherSessions(writer, row.id, undefined);
      const actor = { ...from, name: 'system' };
      recordEndedSessions(writer, actor, ended, { how: 'role lost at the provider', now: world.now() });
    });
  }

  /** Logs why the provider could not be used, for the operator. */
  async logged<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof OidcRefusal && error.cause !== undefined) {
        const { reason, facts } = error;
        this.#vault.log.warn({ ...facts, issuer: this.#settings.issuer }, `oidc sign-in: ${reason}`);
      }
      throw error;
    }
  }

  /** Records a refusal, with further facts. */
  async recordRefusal(
    actor: Actor,
    { reason, facts }: OidcRefusal,
    more: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    await this.#signIn.recordRefusal(actor, 'oidc', reason, { ...facts, ...more });
  }
}

/** A role, and the labels and profiles that confine it; none for everything. */
type Given = { readonly role: Role; readonly reach: readonly string[]; readonly profiles: readonly string[] };

type Permitted = Authenticated & Given;

/** What the audit log says of rights: most people are not confined. */
function shown({ role, reach, profiles }: Given): object {
  return { role, ...(reach.length > 0 && { reach }), ...(profiles.length > 0 && { profiles }) };
}

type BeginsWith = {
  readonly use: UseOnce;
  readonly visitor: Visitor;
  readonly createToken: CreateSessionToken;
};
