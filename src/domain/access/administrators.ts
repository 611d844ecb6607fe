/**
 * Creates, lists and deletes administrators, and resets passwords. Every change shares a transaction with its audit
 * event.
 */
import { z } from 'zod';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import type { Writer } from '../../db/database.ts';
import {
  type AdministratorRow,
  deleteAdministratorRow,
  findAdministrator,
  insertAdministrator,
  listAdministrators,
  setPasswordHash,
} from '../../db/tables/access/administrators.ts';
import { deleteOtherSessions } from '../../db/tables/access/sessions.ts';
import { deleteSettings } from '../../db/tables/settings.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import { asciiName } from '../input-strings.ts';
import { maxPasswordLength } from './password-policy.ts';
import type { Passwords } from './passwords.ts';
import { recordEndedSessions } from './sessions.ts';

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$/;

/** As JSON Schema says it. */
export const administratorNamePattern = namePattern.source;

export const administratorName = asciiName(
  namePattern,
  'a name has up to 64 letters, digits and . _ @ + -, and starts with a letter or digit',
);

/** A password as typed. `Passwords.choose` checks a new one against the policy, which depends on the name too. */
export const typedPassword = z
  .string()
  .min(1, 'password is missing')
  .max(maxPasswordLength, `a password has at most ${maxPasswordLength} bytes`)
  .transform((text) => new Secret(text));

export const createAdministratorInput = z.strictObject({ name: administratorName, password: typedPassword });

export type CreateAdministratorInput = z.output<typeof createAdministratorInput>;

/** An administrator as lists show it; never the hash of the password. */
export type AdministratorView = { name: string; created_at: string; last_signed_in_at: string | null };

/** Creates an administrator. Throws `administrator_exists`, and `invalid_request` for a bad password. */
export async function createAdministrator(
  { db, world }: TimedContext,
  passwords: Passwords,
  actor: Actor,
  { name, password }: CreateAdministratorInput,
): Promise<AdministratorView> {
  const hash = await passwords.choose(name, password);
  return db.write(async (writer) =>
    administratorView(await addAdministrator(writer, actor, name, hash, world.now())),
  );
}

/** Adds the row, records it and revokes the setup link, in the caller's transaction. Throws `administrator_exists`. */
export async function addAdministrator(
  writer: Writer,
  actor: Actor,
  name: string,
  passwordHash: string,
  now: number,
): Promise<AdministratorRow> {
  const existing = await findAdministrator(writer, name);
  if (existing !== undefined) {
    throw new Problem('administrator_exists', {
      detail: `Administrator "${existing.name}" already exists.`,
    });
  }
  const row = await insertAdministrator(writer, { name, password_hash: passwordHash, created_at: now });
  await deleteSettings(writer, ['setup-token-hash', 'setup-token-expires-at', 'setup-token-tag']);
  record(writer, { actor, action: 'administrator.create', ...subject(row) }, now);
  return row;
}

/** All administrators, sorted by name. */
export async function viewAdministrators({ db }: DatabaseContext): Promise<AdministratorView[]> {
  return (await listAdministrators(db.reader)).map(administratorView);
}

/**
 * Sets a new password without asking for the old one, and ends all sessions of the administrator. Returns how many.
 * Throws `administrator_not_found`, and `invalid_request` for a bad password.
 */
export async function resetPassword(
  { db, world }: TimedContext,
  passwords: Passwords,
  actor: Actor,
  { name, password }: CreateAdministratorInput,
): Promise<number> {
  await requireAdministrator(db.reader, name);
  const hash = await passwords.choose(name, password);
  return db.write(async (writer) => {
    const row = await requireAdministrator(writer, name);
    return replacePassword(writer, actor, row, { hash, keptSession: undefined, now: world.now() });
  });
}

/**
 * Stores the hash, ends the other sessions and records it, in the caller's transaction. Returns how many sessions
 * ended.
 */
export async function replacePassword(
  writer: Writer,
  actor: Actor,
  row: AdministratorRow,
  change: { readonly hash: string; readonly keptSession: number | undefined; readonly now: number },
): Promise<number> {
  await setPasswordHash(writer, row.id, change.hash);
  const ended = await deleteOtherSessions(writer, row.id, change.keptSession);
  recordEndedSessions(writer, actor, ended, { how: 'new password', now: change.now });
  const event = {
    actor,
    action: 'administrator.password',
    detail: { sessions_ended: ended.length },
  } as const;
  record(writer, { ...event, resource: subject(row).resource }, change.now);
  return ended.length;
}

/**
 * Deletes an administrator and ends their sessions. Returns whether it was the last one. `theLast` says whether the
 * last one may be deleted: the command line can create another, but the console could not. Throws
 * `administrator_not_found` and `last_administrator`.
 */
export async function deleteAdministrator(
  { db, world }: TimedContext,
  actor: Actor,
  name: string,
  theLast: 'goes' | 'stays',
): Promise<{ readonly wasLast: boolean }> {
  return db.write(async (writer) => {
    const row = await requireAdministrator(writer, name);
    const wasLast = (await listAdministrators(writer)).length === 1;
    if (wasLast && theLast === 'stays') throw new Problem('last_administrator');
    const ended = await deleteOtherSessions(writer, row.id, undefined);
    const now = world.now();
    recordEndedSessions(writer, actor, ended, { how: 'administrator deleted', now });
    await deleteAdministratorRow(writer, row);
    const detail = { sessions_ended: ended.length };
    record(writer, { actor, action: 'administrator.delete', resource: subject(row).resource, detail }, now);
    return { wasLast };
  });
}

export function administratorView(row: AdministratorRow): AdministratorView {
  return {
    name: row.name,
    created_at: formatTimestamp(row.created_at),
    last_signed_in_at: formatTimestampOrNull(row.last_signed_in_at),
  };
}

function subject({ name }: AdministratorRow) {
  return { resource: `administrator:${name}` };
}

async function requireAdministrator(
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
