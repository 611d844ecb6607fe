/** The table `settings`: single values that belong to the database as a whole. */
import type { Reader, Writer } from './database.ts';

/** Names of the values kept here. */
export type SettingKey =
  | 'master-key-check'
  | 'setup-token-hash'
  | 'setup-token-expires-at'
  /** UTC milliseconds. */
  | 'last-backup-at'
  /** Id and link of the last event that was pruned. */
  | 'audit-pruned-through'
  /** Id of the last event that was delivered there. */
  | 'audit-file-cursor'
  | 'audit-syslog-cursor'
  /** JSON: targets of before there was a guard, as `--allow-outbound` has them. */
  | 'kept-outbound-targets';

export async function readSetting(
  reader: Reader,
  key: SettingKey,
): Promise<string | number | Buffer | undefined> {
  const row = await reader.selectFrom('settings').select('value').where('key', '=', key).executeTakeFirst();
  return row?.value;
}

/** Sets a value, whether or not the key has one. */
export async function putSetting(
  writer: Writer,
  key: SettingKey,
  value: string | number | Buffer,
): Promise<void> {
  await writer
    .insertInto('settings')
    .values({ key, value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
    .execute();
}

/** Takes values away, where they are. */
export async function deleteSettings(writer: Writer, keys: readonly SettingKey[]): Promise<void> {
  await writer.deleteFrom('settings').where('key', 'in', keys).execute();
}
