/** The table `master_keys`: which key seals now, and which did before. Names of keys, never a key. */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from '../database.ts';
import type { MasterKeysTable } from '../schema/schema-master-keys.ts';

export type MasterKeyRow = Selectable<MasterKeysTable>;

/** All keys the vault has had, oldest first. */
export async function listMasterKeys(reader: Reader): Promise<MasterKeyRow[]> {
  return reader.selectFrom('master_keys').selectAll().orderBy('since').orderBy('id').execute();
}

/** The name of the key that seals; undefined if the database is new. */
export async function currentMasterKey(reader: Reader): Promise<string | undefined> {
  const row = await reader
    .selectFrom('master_keys')
    .select('id')
    .where('state', '=', 'current')
    .executeTakeFirst();
  return row?.id;
}

/** Makes a key the current one; the one before becomes `previous`. */
export async function setCurrentMasterKey(writer: Writer, id: string, since: number): Promise<void> {
  await writer.updateTable('master_keys').set({ state: 'previous' }).where('state', '=', 'current').execute();
  await writer.insertInto('master_keys').values({ id, state: 'current', since, retired_at: null }).execute();
}

/** Marks the previous keys as no longer needed. */
export async function retirePreviousMasterKeys(writer: Writer, at: number): Promise<void> {
  await writer
    .updateTable('master_keys')
    .set({ state: 'retired', retired_at: at })
    .where('state', '=', 'previous')
    .execute();
}
