/** Sessions of administrators: created at sign-in, looked up by token at every request, ended by deleting the row. */

import { hour, minute } from '../../base/duration.ts';
import { requireIntegrity } from '../../base/integrity.ts';
import { Problem } from '../../base/problem.ts';
import type { Role } from '../../base/role.ts';
import type { Scope } from '../../base/scope.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import {
  type CreateSessionToken,
  readSessionToken,
  type SessionCarrier,
} from '../../crypto/secrets/session-token.ts';
import type { Recorded } from '../../db/audit/row-records.ts';
import { administratorFits, sessionFits, type TaggedAdministrator } from '../../db/audit/row-tags.ts';
import type { Writer } from '../../db/database.ts';
import type { AdministratorRow } from '../../db/tables/access/administrators.ts';
import {
  deleteExpiredSessions,
  deleteSession,
  findSessionById,
  findSessionByToken,
  insertSession,
  listSessions,
  type SessionRow,
  setSessionUsed,
} from '../../db/tables/access/sessions.ts';
import { currentMasterKey } from '../../db/tables/master-keys.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { LogContext, SecretsContext } from '../contexts.ts';
import { reachIn } from '../labels/reach.ts';
import { currentKey } from '../sealed-secrets.ts';
import {
  type AdministratorIdentity,
  actorName,
  type SessionFacts,
  type SignedIn,
  scopesOfRole,
  signInMethodOf,
  type Visitor,
} from './identity.ts';
import { confinementIn } from './profile-confinement.ts';

/** In milliseconds. */
export type SessionLimits = {
  /** A session ends after this time without a request. */
  readonly idle: number;
  /** A session ends at the latest this long after sign-in. */
  readonly lifetime: number;
  /** Whether a session never gets a private key, nor gives anyone the right to. */
  readonly hidesPrivateKeys: boolean;
};

export const defaultSessionLimits: SessionLimits = {
  idle: 30 * minute,
  lifetime: 12 * hour,
  hidesPrivateKeys: false,
};

/** A session in the list of its owner. */
export type SessionView = {
  id: number;
  created_at: string;
  last_used_at: string;
  expires_at: string;
  ip: string | null;
  user_agent: string | null;
  current: boolean;
};

/** Sessions per administrator; the next sign-in ends the oldest. */
const maxSessions = 20;

const maxUserAgentLength = 256;

export class Sessions {
  readonly #vault: SecretsContext & LogContext;
  /** A reload of the settings replaces them. */
  limits: SessionLimits;
  readonly #pendingUses = new Map<number, Promise<void>>();

  constructor(vault: SecretsContext & LogContext, limits: SessionLimits = defaultSessionLimits) {
    this.#vault = vault;
    this.limits = limits;
  }

  /**
   * Creates a session in the transaction of the sign-in and records it. `createToken` was loaded before the
   * transaction.
   */
  async begin(
    writer: Writer,
    row: AdministratorRow,
    { actor, userAgent, oidcSid, secondFactor, method }: Visitor,
    createToken: CreateSessionToken,
  ): Promise<SignedIn> {
    const { world } = this.#vault;
    const administratorId = row.id;
    const now = world.now();
    await deleteExpiredSessions(writer, { now, idleSince: now - this.limits.idle });
    const others = await listSessions(writer, administratorId);
    for (const { id } of others.slice(maxSessions - 1)) await deleteSession(writer, id);
    const displaced = others.slice(maxSessions - 1).map(({ id }) => id);
    const times = { createdAt: now, expiresAt: now + this.limits.lifetime };
    const key = await currentKey(this.#vault, writer);
    const { token, idHash } = createToken(world, key, times, method && 'bearer');
    const { id } = await insertSession(writer, {
      administrator_id: administratorId,
      token_hash: idHash,
      created_at: now,
      expires_at: times.expiresAt,
      last_used_at: now,
      ip: actor.ip ?? null,
      user_agent: userAgent?.slice(0, maxUserAgentLength) ?? null,
      oidc_sid: oidcSid ?? null,
    });
    const identity = this.#identityOf(row, { id, administratorId, ...times });
    const person = { ...actor, name: actorName(identity) };
    recordEndedSessions(writer, person, displaced, { how: 'too many sessions', now });
    const how = { ...(secondFactor && { second_factor: secondFactor }), ...(method && { method }) };
    const detail = Object.keys(how).length === 0 ? {} : { detail: how };
    record(writer, { actor: person, action: 'session.create', resource: `session:${id}`, ...detail }, now);
    return { identity, token };
  }

  /**
   * The administrator of this session token, and notes the use; undefined if the session has ended or never existed, or
   * if the token is presented in another way than it was issued for.
   */
  async find(token: string, carrier: SessionCarrier = 'cookie'): Promise<AdministratorIdentity | undefined> {
    const { db, world } = this.#vault;
    const now = world.now();
    const idHash = await this.#idHashOf(token, now, carrier);
    const found = idHash && (await findSessionByToken(db.reader, idHash));
    if (found === undefined) return undefined;
    const { session: row, person } = found;
    if (!this.#isLive(row, now) || !this.#isAuthentic(row, person)) return undefined;
    if (now - row.last_used_at >= minute) await this.#noteUse(row.id, now);
    return this.#identityOf(person, {
      id: row.id,
      administratorId: row.administrator_id,
      createdAt: row.created_at,
      expiresAt: this.#endOf(row),
    });
  }

  #identityOf(person: Omit<TaggedAdministrator, 'tag'>, session: SessionFacts): AdministratorIdentity {
    const { name, role } = person;
    const confined = { reach: reachIn(person.reach), profiles: confinementIn(person.profiles) };
    const rights = { name, role, ...confined, scopes: this.#scopesOf(role) };
    const hasSecondFactor = person.factors !== null;
    return { kind: 'administrator', ...rights, signIn: signInMethodOf(person), hasSecondFactor, session };
  }

  /** The hash of the session id; undefined if the vault did not issue the token. */
  async #idHashOf(token: string, now: number, carrier: SessionCarrier): Promise<Buffer | undefined> {
    const { db, keyring } = this.#vault;
    const known = keyring.all;
    const idHash = await readSessionToken(known, token, now, carrier);
    if (idHash !== undefined) return idHash;
    // Another process may have issued it with a rotated master key that this one has not loaded yet.
    const name = await currentMasterKey(db.reader);
    const current = name === undefined ? undefined : keyring.use(name);
    return current === undefined || known.includes(current)
      ? undefined
      : readSessionToken([current], token, now, carrier);
  }

  /** Whether this session is still valid. Does not count as a use. */
  async isLive(id: number): Promise<boolean> {
    const { db, world } = this.#vault;
    const row = await findSessionById(db.reader, id);
    return row !== undefined && this.#isLive(row, world.now()) && sessionFits(requireIntegrity(db), row);
  }

  /** Whether the rows of session and administrator have valid integrity tags. */
  #isAuthentic(row: SessionRow & Recorded, person: TaggedAdministrator & Recorded): boolean {
    const { db, log } = this.#vault;
    const integrity = requireIntegrity(db);
    if (sessionFits(integrity, row) && administratorFits(integrity, person)) return true;
    const fields = { session: row.id, administrator: person.name };
    log.error(fields, 'session refused: its database row was modified outside the vault');
    return false;
  }

  /** The valid sessions of the same administrator, newest first. */
  async view({ session }: AdministratorIdentity): Promise<SessionView[]> {
    const { db, world } = this.#vault;
    const now = world.now();
    const rows = await listSessions(db.reader, session.administratorId);
    return rows
      .filter((row) => this.#isLive(row, now))
      .map((row) => ({
        id: row.id,
        created_at: formatTimestamp(row.created_at),
        last_used_at: formatTimestamp(row.last_used_at),
        expires_at: formatTimestamp(this.#endOf(row)),
        ip: row.ip,
        user_agent: row.user_agent,
        current: row.id === session.id,
      }));
  }

  /** Ends this or another session of the same administrator. Throws `session_not_found`. */
  async end(actor: Actor, { session }: AdministratorIdentity, id: number): Promise<void> {
    const { db, world } = this.#vault;
    await db.write(async (writer) => {
      const row = await findSessionById(writer, id);
      if (row === undefined || row.administrator_id !== session.administratorId) {
        throw new Problem('session_not_found');
      }
      await deleteSession(writer, id);
      const detail = { how: id === session.id ? 'signed out' : 'ended from another session' };
      record(writer, { actor, action: 'session.end', resource: `session:${id}`, detail }, world.now());
    });
  }

  #scopesOf(role: Role): ReadonlySet<Scope> {
    const { hidesPrivateKeys } = this.limits;
    return new Set(scopesOfRole(role).filter((scope) => !hidesPrivateKeys || scope !== 'private_keys:read'));
  }

  /** The configured lifetime may have been reduced since sign-in. */
  #endOf({ created_at, expires_at }: SessionRow): number {
    return Math.min(expires_at, created_at + this.limits.lifetime);
  }

  #isLive(row: SessionRow, now: number): boolean {
    return now < this.#endOf(row) && now - row.last_used_at < this.limits.idle;
  }

  /** Concurrent requests write once. Errors are only logged, so that a full disk does not sign people out. */
  #noteUse(id: number, now: number): Promise<void> {
    const { db, log } = this.#vault;
    const pending =
      this.#pendingUses.get(id) ??
      db
        .write((writer) => setSessionUsed(writer, id, now))
        .catch((error: unknown) => log.warn({ err: error }, 'failed to record the last use of a session'))
        .finally(() => this.#pendingUses.delete(id));
    this.#pendingUses.set(id, pending);
    return pending;
  }
}

/** Records that these sessions ended, in the transaction that deleted them. */
export function recordEndedSessions(
  writer: Writer,
  actor: Actor,
  ids: readonly number[],
  { how, now }: { readonly how: string; readonly now: number },
): void {
  for (const id of ids) {
    record(writer, { actor, action: 'session.end', resource: `session:${id}`, detail: { how } }, now);
  }
}
