/** The table `recovery_codes`: codes that replace a second factor, each once; a used one is deleted. */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { RecoveryCodesTable } from '../../schema/schema-access.ts';

export type RecoveryCodeRow = Selectable<RecoveryCodesTable>;

/** The unused codes of one administrator. */
export async function listRecoveryCodes(reader: Reader, administratorId: number): Promise<RecoveryCodeRow[]> {
  return reader
    .selectFrom('recovery_codes')
    .selectAll()
    .where('administrator_id', '=', administratorId)
    .orderBy('id')
    .execute();
}

/** Replaces all codes of an administrator; none removes them. */
export async function replaceRecoveryCodes(
  writer: Writer,
  administratorId: number,
  hashes: readonly Buffer[],
): Promise<void> {
  await writer.deleteFrom('recovery_codes').where('administrator_id', '=', administratorId).execute();
  if (hashes.length === 0) return;
  const rows = hashes.map((code_hash) => ({ administrator_id: administratorId, code_hash }));
  await writer.insertInto('recovery_codes').values(rows).execute();
}

/** Uses up a code; returns false if it was used before. */
export async function takeRecoveryCode(writer: Writer, id: number): Promise<boolean> {
  const taken = await writer.deleteFrom('recovery_codes').where('id', '=', id).returning('id').execute();
  return taken.length > 0;
}
