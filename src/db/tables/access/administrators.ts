/** The table `administrators`: the people who may use the console. */
import { type Selectable, sql } from 'kysely';
import { parseJsonOr } from '../../../base/json.ts';
import { goneRow, type Recorded, recordedLink } from '../../audit/row-records.ts';
import { tagAdministrator } from '../../audit/row-tags.ts';
import type { Reader, Writer } from '../../database.ts';
import { sameWithoutCase } from '../../engine-sql.ts';
import type { AdministratorsTable } from '../../schema/schema-access.ts';

export type AdministratorRow = Selectable<AdministratorsTable>;

type LaterColumn = 'oidc_issuer' | 'oidc_subject' | 'reach' | 'profiles';

type GivenLater = 'last_signed_in_at' | 'factors' | 'tag';

const lowerName = sql<string>`lower(name)`;

/** By name, ignoring case. */
export async function findAdministrator(
  reader: Reader,
  name: string,
): Promise<(AdministratorRow & Recorded) | undefined> {
  return reader
    .selectFrom('administrators')
    .selectAll()
    .select(recordedLink('administrator', 'administrators.name'))
    .where(sameWithoutCase('name', name))
    .executeTakeFirst();
}

/** The person that an OpenID Connect provider calls `subject`. */
export async function findOidcAdministrator(
  reader: Reader,
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
): Promise<(AdministratorRow & Recorded) | undefined> {
  return reader
    .selectFrom('administrators')
    .selectAll()
    .select(recordedLink('administrator', 'administrators.name'))
    .where('oidc_issuer', '=', issuer)
    .where('oidc_subject', '=', subject)
    .executeTakeFirst();
}

/** All administrators by name. */
export async function listAdministrators(reader: Reader): Promise<AdministratorRow[]> {
  return reader.selectFrom('administrators').selectAll().orderBy(lowerName).execute();
}

/** The people with a password who are confined to profiles, by name. */
export async function listConfinedPeople(
  reader: Reader,
): Promise<{ readonly name: string; readonly profiles: readonly string[] }[]> {
  const rows = await reader
    .selectFrom('administrators')
    .select(['name', 'profiles'])
    .where('profiles', 'is not', null)
    .where('oidc_subject', 'is', null)
    .orderBy(lowerName)
    .execute();
  return rows.map(({ name, profiles }) => ({ name, profiles: parseJsonOr(profiles, []) }));
}

/** Whether anyone has a password here: people of an OpenID Connect provider depend on it. */
export async function hasAdministrators(reader: Reader): Promise<boolean> {
  const any = await reader
    .selectFrom('administrators')
    .select('id')
    .where('oidc_subject', 'is', null)
    .limit(1)
    .executeTakeFirst();
  return any !== undefined;
}

export async function insertAdministrator(
  writer: Writer,
  row: Omit<AdministratorRow, 'id' | GivenLater | LaterColumn> & Partial<Pick<AdministratorRow, LaterColumn>>,
): Promise<AdministratorRow> {
  const made = await writer.insertInto('administrators').values(row).returningAll().executeTakeFirstOrThrow();
  await tagAdministrator(writer, made.id);
  return made;
}

export async function setPasswordHash(writer: Writer, id: number, hash: string): Promise<void> {
  await writer.updateTable('administrators').set({ password_hash: hash }).where('id', '=', id).execute();
  await tagAdministrator(writer, id);
}

/** Sets what an administrator may do. */
export async function setRights(
  writer: Writer,
  id: number,
  { role, reach, profiles }: Pick<AdministratorRow, 'role' | 'reach' | 'profiles'>,
): Promise<void> {
  await writer.updateTable('administrators').set({ role, reach, profiles }).where('id', '=', id).execute();
  await tagAdministrator(writer, id);
}

/** Stores the digest of their second factors (audit/factor-digest.ts). */
export async function setFactors(writer: Writer, id: number, factors: Buffer | null): Promise<void> {
  await writer.updateTable('administrators').set({ factors }).where('id', '=', id).execute();
  await tagAdministrator(writer, id);
}

export async function setLastSignedIn(writer: Writer, id: number, at: number): Promise<void> {
  await writer.updateTable('administrators').set({ last_signed_in_at: at }).where('id', '=', id).execute();
}

/** Deletes the administrator and, by cascade, their sessions. */
export async function deleteAdministratorRow(
  writer: Writer,
  { id, name }: Pick<AdministratorRow, 'id' | 'name'>,
): Promise<void> {
  await writer.deleteFrom('administrators').where('id', '=', id).execute();
  writer.rows.set(`administrator:${name}`, goneRow);
}
