/**
 * Sign-in by OpenID Connect. Issuer and subject identify a person, never a name or an email address. The account is
 * created at the first sign-in, and each one sets its role from the claims.
 */
import { requireIntegrity } from '../../base/integrity.ts';
import { parseJsonOr } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { Role } from '../../base/role.ts';
import { Secret } from '../../base/secret.ts';
import { sha256 } from '../../base/sha256.ts';
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
import { insertOidcUse } from '../../db/tables/access/oidc-uses.ts';
import { deleteOtherSessions } from '../../db/tables/access/sessions.ts';
import { labelsText } from '../../db/tables/certificates/certificate-labels.ts';
import type { SignedIn, Visitor } from '../access/identity.ts';
import { recordEndedSessions } from '../access/sessions.ts';
import type { SignIn } from '../access/sign-in.ts';
import type { Attempt } from '../access/sign-in-backoff.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { LogContext, SecretsContext } from '../contexts.ts';
import { nameIn, reachIn, roleIn, roleValuesIn } from './claims.ts';
import { type Authenticated, OidcProvider, type ProviderContext } from './oidc-provider.ts';
import { openPending, type PendingSignIn, pendingLifetime, sealJson } from './pending-sign-in.ts';
import type { ProviderSettings } from './provider-settings.ts';
import { OidcRefusal } from './refusal.ts';
import { finishTest } from './try-sign-in.ts';

export type OidcContext = SecretsContext & LogContext & ProviderContext;

/** At most this much of a claim goes into the audit log. */
const maxRecorded = 300;

export class OidcSignIn {
  readonly #vault: OidcContext;
  readonly #signIn: SignIn;
  readonly provider: OidcProvider;

  constructor(vault: OidcContext, signIn: SignIn, settings: ProviderSettings) {
    this.#vault = vault;
    this.#signIn = signIn;
    this.provider = new OidcProvider(vault, settings);
  }

  /** The page of the provider, and the sealed text that the same browser must return. Throws OidcRefusal. */
  async begin(): Promise<{ readonly url: string; readonly sealed: Secret<string> }> {
    const { issuer, clientId } = this.provider.settings;
    const checks = this.provider.newChecks();
    const url = await this.#logged(() => this.provider.pageFor(checks));
    const expiresAt = this.#vault.world.now() + pendingLifetime;
    const sealed = await sealJson(this.#vault, 'sign-in', { ...checks, issuer, clientId, expiresAt });
    return { url, sealed: new Secret(sealed.toString('base64url')) };
  }

  /**
   * Signs in the person whom the provider sent back with `query`, in the browser that returned `sealed`. Throws
   * OidcRefusal, recorded in the audit log.
   */
  async finish(query: string, sealed: string | undefined, visitor: Visitor): Promise<SignedIn> {
    let attempt: Attempt;
    try {
      attempt = this.#signIn.backoff.begin(undefined, visitor.actor.ip, 'stranger');
    } catch (error) {
      if (error instanceof Problem) throw new OidcRefusal('rate_limited', error.message);
      throw error;
    }
    try {
      const pending = this.#pendingIn(query, sealed);
      const person = await this.#logged(() => this.provider.finish(query, pending));
      const signedIn = await this.#admit(person, pending, visitor);
      attempt.succeeded();
      return signedIn;
    } catch (error) {
      if (!(error instanceof OidcRefusal) || error.code === 'provider_unreachable') attempt.withdrawn();
      if (error instanceof OidcRefusal) await this.#recordRefusal(visitor.actor, error);
      throw error;
    }
  }

  /** Finishes a test, for which the command on the host waits; false if `query` is not the response to one. */
  finishTest(query: string): Promise<boolean> {
    return finishTest(this.#vault, this.provider, query);
  }

  #pendingIn(query: string, sealed: string | undefined): PendingSignIn {
    const pending =
      sealed === undefined ? undefined : openPending<PendingSignIn>(this.#vault, 'sign-in', sealed);
    const { issuer, clientId } = this.provider.settings;
    if (pending === undefined) throw new OidcRefusal('expired', 'no sign-in begun in this browser');
    if (pending.issuer !== issuer || pending.clientId !== clientId) {
      throw new OidcRefusal('expired', 'sign-in begun with another provider');
    }
    // Before the provider is asked for anything; the library compares it, too.
    if (!sha256(new URLSearchParams(query).get('state') ?? '').equals(sha256(pending.state))) {
      throw new OidcRefusal('expired', 'response to another sign-in');
    }
    return pending;
  }

  /** The session of a person with a role. */
  async #admit(person: Authenticated, pending: PendingSignIn, visitor: Visitor): Promise<SignedIn> {
    const { roles } = this.provider.settings;
    const role = roleIn(person.claims, roles);
    const reach = role === undefined ? undefined : reachIn(person.claims, this.provider.settings, role);
    if (role === undefined || reach === undefined) {
      await this.#endSessions(person, visitor.actor);
      const values = JSON.stringify(roleValuesIn(person.claims, roles)).slice(0, maxRecorded);
      const facts = { oidc_subject: person.subject, claim: roles.claim, values };
      const missing = role === undefined ? 'no role for this person' : 'no reach for this person';
      throw new OidcRefusal('not_permitted', missing, facts);
    }
    const createToken = await sessionTokenCreator();
    return this.#vault.db.write((writer) =>
      this.#begin(writer, { ...person, role, reach }, { pending, visitor, createToken }),
    );
  }

  async #begin(
    writer: Writer,
    person: Permitted,
    { pending, visitor, createToken }: BeginsWith,
  ): Promise<SignedIn> {
    const now = this.#vault.world.now();
    const use = { now, expiresAt: pending.expiresAt };
    if (!(await insertOidcUse(writer, sha256(`sign-in ${pending.state}`), use))) {
      throw new OidcRefusal('expired', 'response used before');
    }
    const row = await this.#account(writer, person, visitor.actor);
    await setLastSignedIn(writer, row.id, now);
    return this.#signIn.sessions.begin(writer, row, { ...visitor, oidcSid: person.sid }, createToken);
  }

  /** The account of the person with the role and reach of the claims; a new one at the first sign-in. */
  async #account(
    writer: Writer,
    { subject, claims, role, reach }: Permitted,
    from: Actor,
  ): Promise<AdministratorRow> {
    const now = this.#vault.world.now();
    const { issuer } = this.provider.settings;
    const known = await findOidcAdministrator(writer, { issuer, subject });
    const facts = { oidc_subject: subject };
    const rights = { role, reach: labelsText(reach) };
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
        { actor, action: 'administrator.create', resource, detail: { ...shown(role, reach), ...oidc } },
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
    if (known.role === role && known.reach === rights.reach) return known;
    await setRights(writer, known.id, rights);
    const [actor, resource] = [{ ...from, name: 'system' }, `administrator:${known.name}`];
    const before = shown(known.role, parseJsonOr(known.reach, []));
    const detail = { ...shown(role, reach), before, oidc_issuer: issuer };
    record(writer, { actor, action: 'administrator.update', resource, detail }, now);
    return { ...known, ...rights };
  }

  /** Ends the sessions of someone who has lost their role at the provider. */
  async #endSessions({ subject }: Authenticated, from: Actor): Promise<void> {
    const { db, world } = this.#vault;
    const { issuer } = this.provider.settings;
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
  async #logged<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof OidcRefusal && error.cause !== undefined) {
        const { reason, facts } = error;
        this.#vault.log.warn({ ...facts, issuer: this.provider.settings.issuer }, `oidc sign-in: ${reason}`);
      }
      throw error;
    }
  }

  async #recordRefusal(actor: Actor, { reason, facts }: OidcRefusal): Promise<void> {
    await this.#signIn.recordRefusal(actor, 'oidc', reason, facts);
  }
}

/** Someone with a role and the labels that confine it; none for everything. */
type Permitted = Authenticated & { readonly role: Role; readonly reach: readonly string[] };

/** What the audit log says of rights: most people are not confined. */
function shown(role: Role, reach: readonly string[]): object {
  return { role, ...(reach.length > 0 && { reach }) };
}

type BeginsWith = {
  readonly pending: PendingSignIn;
  readonly visitor: Visitor;
  readonly createToken: CreateSessionToken;
};
