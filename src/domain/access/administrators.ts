/**
 * Creates, lists and deletes administrators, and resets passwords. Every change shares a transaction with its audit
 * event.
 */
import { parseJson, parseJsonOr } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { Role } from '../../base/role.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import { clearFactors, type FactorCounts, factorCounts } from '../../db/audit/factor-digest.ts';
import type { Writer } from '../../db/database.ts';
import {
  type AdministratorRow,
  deleteAdministratorRow,
  findAdministrator,
  insertAdministrator,
  listAdministrators,
  setPasswordHash,
  setRights,
} from '../../db/tables/access/administrators.ts';
import { deleteOtherSessions } from '../../db/tables/access/sessions.ts';
import { labelsText } from '../../db/tables/certificates/certificate-labels.ts';
import { deleteSettings } from '../../db/tables/settings.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import { refuseUnfitReach } from '../labels/reach.ts';
import type { CreateAdministratorInput, UpdateAdministratorInput } from './administrator-inputs.ts';
import { type SignInMethod, signInMethodOf } from './identity.ts';
import type { Passwords } from './passwords.ts';
import { confinementText, refuseUnfitProfilesOfPerson } from './profile-confinement.ts';
import { recordEndedSessions } from './sessions.ts';

/** An administrator as lists show it; never the hash of the password. */
export type AdministratorView = {
  name: string;
  role: Role;
  /** The labels that confine what they see and change; empty for everything. */
  reach: string[];
  /** The profiles that they may have certificates issued with; empty for any. */
  profiles: string[];
  sign_in: SignInMethod;
  created_at: string;
  last_signed_in_at: string | null;
  /** A passkey or an authenticator app. */
  has_second_factor: boolean;
};

/** Creates an administrator. Throws `administrator_exists`, and `invalid_request` for a bad password. */
export async function createAdministrator(
  { db, world }: TimedContext,
  passwords: Passwords,
  actor: Actor,
  {
    name,
    password,
    role,
    reach = [],
    profiles = [],
  }: Omit<CreateAdministratorInput, 'reach' | 'profiles'> & Partial<CreateAdministratorInput>,
): Promise<AdministratorView> {
  refuseUnfitReach(role, reach);
  // Before the password is hashed, which takes a while.
  await refuseUnfitProfilesOfPerson(db.reader, { role, profiles });
  const hash = await passwords.choose(name, password);
  return db.write(async (writer) => {
    await refuseUnfitProfilesOfPerson(writer, { role, profiles });
    const rights = { role, reach: labelsText(reach), profiles: confinementText(profiles) };
    const person = { name, ...rights, password_hash: hash };
    return administratorView(await addAdministrator(writer, actor, person, world.now()));
  });
}

/** Adds the row, records it and revokes the setup link, in the caller's transaction. Throws `administrator_exists`. */
export async function addAdministrator(
  writer: Writer,
  actor: Actor,
  person: Pick<AdministratorRow, 'name' | 'role' | 'password_hash'> &
    Partial<Pick<AdministratorRow, 'reach' | 'profiles'>>,
  now: number,
): Promise<AdministratorRow> {
  const existing = await findAdministrator(writer, person.name);
  if (existing !== undefined) {
    throw new Problem('administrator_exists', {
      detail: `Administrator "${existing.name}" already exists.`,
    });
  }
  const row = await insertAdministrator(writer, { ...person, created_at: now });
  await deleteSettings(writer, ['setup-token-hash', 'setup-token-expires-at', 'setup-token-tag']);
  const confined = {
    ...(row.reach !== null && { reach: parseJson(row.reach) }),
    ...(row.profiles !== null && { profiles: parseJson(row.profiles) }),
  };
  const detail = row.role === 'admin' ? {} : { detail: { role: row.role, ...confined } };
  record(writer, { actor, action: 'administrator.create', ...subject(row), ...detail }, now);
  return row;
}

/** All administrators, sorted by name. */
export async function viewAdministrators({ db }: DatabaseContext): Promise<AdministratorView[]> {
  return (await listAdministrators(db.reader)).map(administratorView);
}

/**
 * Sets a new password without asking for the old one, and ends all sessions of the administrator. Returns how many.
 * Throws `administrator_not_found`, `oidc_administrator`, and `invalid_request` for a bad password.
 */
export async function resetPassword(
  { db, world }: TimedContext,
  passwords: Passwords,
  actor: Actor,
  { name, password }: Pick<CreateAdministratorInput, 'name' | 'password'>,
): Promise<Reset> {
  refuseOidc(await requireAdministrator(db.reader, name));
  const hash = await passwords.choose(name, password);
  return db.write(async (writer) => {
    const row = await requireAdministrator(writer, name);
    refuseOidc(row);
    const cleared = factorCounts(await clearFactors(writer, row.id));
    const change = { hash, keptSession: undefined, now: world.now(), cleared };
    return { sessions: await replacePassword(writer, actor, row, change), ...cleared };
  });
}

/** What a reset of a password ended and removed. */
export type Reset = FactorCounts & { readonly sessions: number };

/**
 * Stores the hash, ends the other sessions and records it, in the caller's transaction. Returns how many sessions
 * ended.
 */
export async function replacePassword(
  writer: Writer,
  actor: Actor,
  row: AdministratorRow,
  change: {
    readonly hash: string;
    readonly keptSession: number | undefined;
    readonly now: number;
    /** The second factors that went with it. */
    readonly cleared?: FactorCounts;
  },
): Promise<number> {
  await setPasswordHash(writer, row.id, change.hash);
  const ended = await deleteOtherSessions(writer, row.id, change.keptSession);
  recordEndedSessions(writer, actor, ended, { how: 'new password', now: change.now });
  const event = {
    actor,
    action: 'administrator.password',
    detail: { sessions_ended: ended.length, ...(change.cleared && clearedFactors(change.cleared)) },
  } as const;
  record(writer, { ...event, resource: subject(row).resource }, change.now);
  return ended.length;
}

/** Those that were there. */
function clearedFactors(counts: FactorCounts) {
  const found = Object.entries(counts).filter(([, count]) => count > 0);
  return found.length === 0 ? {} : { second_factors_cleared: Object.fromEntries(found) };
}

/** Whether the last one with the role admin may go: the command line can make another, the console could not. */
type Last = 'goes' | 'stays';

/**
 * Gives an administrator another role, reach or profiles, which counts at the next request; the same ones change
 * nothing. Throws `administrator_not_found`, `oidc_administrator`, `last_administrator`, and `invalid_request` for a
 * reach or profiles that the role does not have, and for unknown profiles.
 */
export async function changeRights(
  { db, world }: TimedContext,
  actor: Actor,
  { name, theLast, ...change }: UpdateAdministratorInput & { readonly name: string; readonly theLast: Last },
): Promise<AdministratorView> {
  return db.write(async (writer) => {
    const row = await requireAdministrator(writer, name);
    const { role: formerRole, reach: formerReach, profiles: formerProfiles } = administratorView(row);
    const { role = formerRole, reach = formerReach, profiles = formerProfiles } = change;
    refuseUnfitReach(role, reach);
    await refuseUnfitProfilesOfPerson(writer, { role, profiles });
    const hasOtherReach = reach.join() !== formerReach.join();
    // Their order does not matter.
    const hasOtherProfiles = profiles.toSorted().join() !== formerProfiles.toSorted().join();
    if (role === row.role && !hasOtherReach && !hasOtherProfiles) return administratorView(row);
    refuseOidc(row);
    if (theLast === 'stays' && role !== row.role) await refuseTheLast(writer, row);
    const rights = { role, reach: labelsText(reach), profiles: confinementText(profiles) };
    await setRights(writer, row.id, rights);
    const reaches = hasOtherReach ? { after: { reach }, before: { reach: formerReach } } : undefined;
    const issues = hasOtherProfiles
      ? { after: { profiles }, before: { profiles: formerProfiles } }
      : undefined;
    const before = { role: formerRole, ...reaches?.before, ...issues?.before };
    const detail = { role, ...reaches?.after, ...issues?.after, before };
    record(writer, { actor, action: 'administrator.update', ...subject(row), detail }, world.now());
    return administratorView({ ...row, ...rights });
  });
}

/** Throws `last_administrator` if no one else has the role admin and a password, which work without a provider. */
async function refuseTheLast(writer: Writer, row: AdministratorRow): Promise<void> {
  const isLocalAdmin = ({ role, oidc_subject }: AdministratorRow) =>
    role === 'admin' && oidc_subject === null;
  const others = (await listAdministrators(writer)).filter(({ id }) => id !== row.id);
  if (isLocalAdmin(row) && !others.some(isLocalAdmin)) {
    throw new Problem('last_administrator');
  }
}

/**
 * Deletes an administrator and ends their sessions. Returns whether it was the last one. Throws
 * `administrator_not_found` and `last_administrator`.
 */
export async function deleteAdministrator(
  { db, world }: TimedContext,
  actor: Actor,
  name: string,
  theLast: Last,
): Promise<{ readonly wasLast: boolean }> {
  return db.write(async (writer) => {
    const row = await requireAdministrator(writer, name);
    const others = (await listAdministrators(writer)).filter(({ id }) => id !== row.id);
    const wasLast = !others.some(({ oidc_subject }) => oidc_subject === null);
    if (theLast === 'stays') await refuseTheLast(writer, row);
    const ended = await deleteOtherSessions(writer, row.id, undefined);
    const now = world.now();
    recordEndedSessions(writer, actor, ended, { how: 'administrator deleted', now });
    await deleteAdministratorRow(writer, row);
    const detail = { sessions_ended: ended.length };
    record(writer, { actor, action: 'administrator.delete', resource: subject(row).resource, detail }, now);
    return { wasLast };
  });
}

/** Throws `oidc_administrator` for what only the identity provider can change. */
function refuseOidc(row: AdministratorRow): void {
  if (row.oidc_subject !== null) throw new Problem('oidc_administrator');
}

export function administratorView(row: AdministratorRow): AdministratorView {
  return {
    name: row.name,
    role: row.role,
    reach: parseJsonOr(row.reach, []),
    profiles: parseJsonOr(row.profiles, []),
    sign_in: signInMethodOf(row),
    created_at: formatTimestamp(row.created_at),
    last_signed_in_at: formatTimestampOrNull(row.last_signed_in_at),
    has_second_factor: row.factors !== null,
  };
}

function subject({ name }: AdministratorRow) {
  return { resource: `administrator:${name}` };
}

/** Throws `administrator_not_found`. */
export async function requireAdministrator(
  reader: Parameters<typeof findAdministrator>[0],
  name: string,
): Promise<AdministratorRow> {
  const row = await findAdministrator(reader, name);
  if (row !== undefined) return row;
  throw new Problem('administrator_not_found', {
    detail: `Unknown administrator ${JSON.stringify(name)}.`,
    hint: 'Try: vault admin list',
  });
}
