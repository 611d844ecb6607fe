/** The table `authenticator_apps`: the shared secrets of apps that show codes by time. */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { AuthenticatorAppsTable } from '../../schema/schema-access.ts';

export type AuthenticatorAppRow = Selectable<AuthenticatorAppsTable>;

export async function findAuthenticatorApp(
  reader: Reader,
  administratorId: number,
): Promise<AuthenticatorAppRow | undefined> {
  return reader
    .selectFrom('authenticator_apps')
    .selectAll()
    .where('administrator_id', '=', administratorId)
    .executeTakeFirst();
}

/** Adds a row without its secret, which is sealed for its id. Returns the id. */
export async function insertAuthenticatorApp(
  writer: Writer,
  row: Pick<AuthenticatorAppRow, 'administrator_id' | 'last_step' | 'created_at'>,
): Promise<number> {
  const { id } = await writer
    .insertInto('authenticator_apps')
    .values({ ...row, sealed_secret: Buffer.alloc(0), last_used_at: null })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

export async function setAuthenticatorSecret(writer: Writer, id: number, sealed: Buffer): Promise<void> {
  await writer
    .updateTable('authenticator_apps')
    .set({ sealed_secret: sealed })
    .where('id', '=', id)
    .execute();
}

/** Uses up a time step and all before it; returns false if that one or a later one was used before. */
export async function takeStep(
  writer: Writer,
  id: number,
  { step, now }: { readonly step: number; readonly now: number },
): Promise<boolean> {
  const taken = await writer
    .updateTable('authenticator_apps')
    .set({ last_step: step, last_used_at: now })
    .where('id', '=', id)
    .where('last_step', '<', step)
    .returning('id')
    .execute();
  return taken.length > 0;
}

export async function deleteAuthenticatorApp(writer: Writer, administratorId: number): Promise<void> {
  await writer.deleteFrom('authenticator_apps').where('administrator_id', '=', administratorId).execute();
}
