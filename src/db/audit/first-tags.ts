/** Tags for the rows of a vault from before tags existed. */
import type { Writer } from '../database.ts';
import { tagAdministrator, tagApiKey, tagSession } from './row-tags.ts';

/** Tags all existing rows and returns their number: for a vault from before tags existed. */
export async function tagAllRows(
  writer: Writer,
): Promise<{ api_keys: number; administrators: number; sessions: number }> {
  const keys = await writer.selectFrom('api_keys').select('id').execute();
  for (const { id } of keys) await tagApiKey(writer, id);
  const administrators = await writer.selectFrom('administrators').select('id').execute();
  for (const { id } of administrators) await tagAdministrator(writer, id);
  const sessions = await writer.selectFrom('sessions').selectAll().execute();
  for (const row of sessions) await tagSession(writer, row);
  return { api_keys: keys.length, administrators: administrators.length, sessions: sessions.length };
}
