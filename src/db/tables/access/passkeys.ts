/** The table `passkeys`: WebAuthn credentials of administrators. */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { PasskeysTable } from '../../schema/schema-access.ts';

export type PasskeyRow = Selectable<PasskeysTable>;

/** The passkeys of one administrator, oldest first. */
export async function listPasskeys(reader: Reader, administratorId: number): Promise<PasskeyRow[]> {
  return reader
    .selectFrom('passkeys')
    .selectAll()
    .where('administrator_id', '=', administratorId)
    .orderBy('id')
    .execute();
}

/** Whether anyone has a passkey. */
export async function hasPasskeys(reader: Reader): Promise<boolean> {
  const any = await reader.selectFrom('passkeys').select('id').limit(1).executeTakeFirst();
  return any !== undefined;
}

/** The passkey with this credential id, with the name of its administrator. */
export async function findPasskey(
  reader: Reader,
  credentialId: Buffer,
): Promise<(PasskeyRow & { readonly person: string }) | undefined> {
  return reader
    .selectFrom('passkeys')
    .innerJoin('administrators', 'administrators.id', 'passkeys.administrator_id')
    .selectAll('passkeys')
    .select('administrators.name as person')
    .where('credential_id', '=', credentialId)
    .executeTakeFirst();
}

export async function insertPasskey(
  writer: Writer,
  row: Omit<PasskeyRow, 'id' | 'last_used_at'>,
): Promise<PasskeyRow> {
  return writer
    .insertInto('passkeys')
    .values({ ...row, last_used_at: null })
    .returningAll()
    .executeTakeFirstOrThrow();
}

export async function setPasskeyName(writer: Writer, id: number, name: string): Promise<void> {
  await writer.updateTable('passkeys').set({ name }).where('id', '=', id).execute();
}

/**
 * Records a use with its signature counter; returns false if the passkey is gone or its counter has not grown, unless
 * it does not count (WebAuthn §7.2 step 22).
 */
export async function takeSignCount(
  writer: Writer,
  id: number,
  { count, now }: { readonly count: number; readonly now: number },
): Promise<boolean> {
  const taken = await writer
    .updateTable('passkeys')
    .set({ sign_count: count, last_used_at: now })
    .where('id', '=', id)
    .where('sign_count', count === 0 ? '=' : '<', count)
    .returning('id')
    .execute();
  return taken.length > 0;
}

export async function deletePasskey(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('passkeys').where('id', '=', id).execute();
}
