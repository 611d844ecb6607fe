/** The table `issuance_profiles`: named sets of what certificates of a private CA have and may have. */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { IssuanceProfilesTable } from '../../schema/schema-private-ca.ts';

export type IssuanceProfileRow = Selectable<IssuanceProfilesTable>;

export async function findProfile(
  reader: Reader,
  issuerId: number,
  name: string,
): Promise<IssuanceProfileRow | undefined> {
  return reader
    .selectFrom('issuance_profiles')
    .selectAll()
    .where('issuer_id', '=', issuerId)
    .where('name', '=', name)
    .executeTakeFirst();
}

/** The profiles of an issuer by name. */
export async function listProfiles(reader: Reader, issuerId: number): Promise<IssuanceProfileRow[]> {
  return reader
    .selectFrom('issuance_profiles')
    .selectAll()
    .where('issuer_id', '=', issuerId)
    .orderBy('name')
    .execute();
}

/** Stores a profile, in place of the one with its name. */
export async function putProfile(writer: Writer, row: IssuanceProfileRow): Promise<void> {
  const { issuer_id: _, name: __, created_at: ___, ...changes } = row;
  await writer
    .insertInto('issuance_profiles')
    .values(row)
    .onConflict((conflict) => conflict.columns(['issuer_id', 'name']).doUpdateSet(changes))
    .execute();
}

export async function deleteProfileRow(writer: Writer, issuerId: number, name: string): Promise<void> {
  await writer
    .deleteFrom('issuance_profiles')
    .where('issuer_id', '=', issuerId)
    .where('name', '=', name)
    .execute();
}

/** Names of certificates with this profile; at most `limit`. */
export async function certificatesOfProfile(
  reader: Reader,
  issuerId: number,
  name: string,
  limit: number,
): Promise<string[]> {
  const rows = await reader
    .selectFrom('certificates')
    .select('name')
    .where('issuer_id', '=', issuerId)
    .where('profile', '=', name)
    .orderBy('name')
    .limit(limit)
    .execute();
  return rows.map((row) => row.name);
}
