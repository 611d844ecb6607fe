/** The table `sessions`: who is signed in, from where, since when. Deleting a row ends the session. */
import type { Selectable } from 'kysely';
import { goneRow, type Recorded, recordedLink } from '../../audit/row-records.ts';
import { type TaggedAdministrator, tagSession } from '../../audit/row-tags.ts';
import type { Reader, Writer } from '../../database.ts';
import type { SessionsTable } from '../../schema/schema-access.ts';

export type SessionRow = Selectable<SessionsTable>;

/** A session with its administrator. */
export async function findSessionByToken(
  reader: Reader,
  tokenHash: Buffer,
): Promise<{ session: SessionRow & Recorded; person: TaggedAdministrator & Recorded } | undefined> {
  const row = await reader
    .selectFrom('sessions')
    .innerJoin('administrators', 'administrators.id', 'sessions.administrator_id')
    .selectAll('sessions')
    .select([
      'administrators.name as person_name',
      'administrators.password_hash as person_password_hash',
      'administrators.role as person_role',
      'administrators.oidc_issuer as person_oidc_issuer',
      'administrators.oidc_subject as person_oidc_subject',
      'administrators.factors as person_factors',
      'administrators.reach as person_reach',
      'administrators.profiles as person_profiles',
      'administrators.tag as person_tag',
      recordedLink('administrator', 'administrators.name', 'person_recorded'),
      recordedLink('session', 'sessions.id'),
    ])
    .where('token_hash', '=', tokenHash)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { person_name, person_password_hash, person_role, person_tag, person_recorded, ...rest } = row;
  const { person_oidc_issuer, person_oidc_subject, person_factors, ...confined } = rest;
  const { person_reach, person_profiles, ...session } = confined;
  return {
    session,
    person: {
      id: session.administrator_id,
      name: person_name,
      password_hash: person_password_hash,
      role: person_role,
      oidc_issuer: person_oidc_issuer,
      oidc_subject: person_oidc_subject,
      factors: person_factors,
      reach: person_reach,
      profiles: person_profiles,
      tag: person_tag,
      recorded: person_recorded,
    },
  };
}

export async function findSessionById(
  reader: Reader,
  id: number,
): Promise<(SessionRow & Recorded) | undefined> {
  return reader
    .selectFrom('sessions')
    .selectAll()
    .select(recordedLink('session', 'sessions.id'))
    .where('id', '=', id)
    .executeTakeFirst();
}

/** The sessions of one administrator, newest first. */
export async function listSessions(reader: Reader, administratorId: number): Promise<SessionRow[]> {
  return reader
    .selectFrom('sessions')
    .selectAll()
    .where('administrator_id', '=', administratorId)
    .orderBy('id', 'desc')
    .execute();
}

/** The ids of the sessions that began with a session of an OpenID Connect provider, at most `limit`. */
export async function listOidcSessions(
  reader: Reader,
  { issuer, sid }: { readonly issuer: string; readonly sid: string },
  limit: number,
): Promise<number[]> {
  const rows = await reader
    .selectFrom('sessions')
    .innerJoin('administrators', 'administrators.id', 'sessions.administrator_id')
    .select('sessions.id')
    .where('oidc_sid', '=', sid)
    .where('oidc_issuer', '=', issuer)
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

export async function insertSession(
  writer: Writer,
  row: Omit<SessionRow, 'id' | 'tag'>,
): Promise<SessionRow> {
  const made = await writer.insertInto('sessions').values(row).returningAll().executeTakeFirstOrThrow();
  await tagSession(writer, made);
  return made;
}

export async function setSessionUsed(writer: Writer, id: number, at: number): Promise<void> {
  await writer.updateTable('sessions').set({ last_used_at: at }).where('id', '=', id).execute();
}

export async function deleteSession(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('sessions').where('id', '=', id).execute();
  writer.rows.set(`session:${id}`, goneRow);
}

/** Deletes all sessions of an administrator except one, and returns their ids. */
export async function deleteOtherSessions(
  writer: Writer,
  administratorId: number,
  kept: number | undefined,
): Promise<number[]> {
  const deleted = await writer
    .deleteFrom('sessions')
    .where('administrator_id', '=', administratorId)
    .where('id', '!=', kept ?? 0)
    .returning('id')
    .execute();
  for (const { id } of deleted) writer.rows.set(`session:${id}`, goneRow);
  return deleted.map(({ id }) => id);
}

/** Deletes sessions that have expired at `now`, or that were not used since `idleSince`. */
export async function deleteExpiredSessions(
  writer: Writer,
  { now, idleSince }: { readonly now: number; readonly idleSince: number },
): Promise<void> {
  await writer
    .deleteFrom('sessions')
    .where((either) => either.or([either('expires_at', '<=', now), either('last_used_at', '<=', idleSince)]))
    .execute();
}
