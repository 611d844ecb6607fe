/** The table `settings`: single values that belong to the database as a whole. */
import type { Reader, Writer } from '../database.ts';

/** Names of the values kept here. */
export type SettingKey =
  | 'master-key-check'
  | 'setup-token-hash'
  | 'setup-token-expires-at'
  | 'setup-token-tag'
  /** UTC milliseconds. */
  | 'last-backup-at'
  /** Random, of this database alone: a restored one gets another. */
  | 'vault-id'
  /** UTC milliseconds: when it got the id. */
  | 'vault-id-since'
  /** UTC milliseconds; there while a server has the database open. */
  | 'served-since'
  /** Id and hash of the newest event, and the tag over them (audit-mark.ts). */
  | 'audit-mark'
  /** Id and hash of the last event that was pruned. */
  | 'audit-pruned-through'
  /** Since when the clock runs without a jump, and when it was last looked at: UTC milliseconds. */
  | 'steady-clock'
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
