/** The table `settings`: single values for the database as a whole. */
import type { Expression } from 'kysely';
import { compiledQuery } from '../compiled-query.ts';
import type { Reader, Writer } from '../database.ts';
import { storedValue } from '../engine-sql.ts';

/** Names of the values kept here. */
export type SettingKey =
  | 'master-key-check'
  | 'setup-token-hash'
  | 'setup-token-expires-at'
  | 'setup-token-tag'
  /** UTC milliseconds. */
  | 'last-backup-at'
  /** Random, unique to this database: a restored one gets a new id. */
  | 'vault-id'
  /** UTC milliseconds: when the id was assigned. */
  | 'vault-id-since'
  /** Where the vault went: the place of another database. Present in one that refuses writes. */
  | 'moved-to'
  /** The id of the vault that this is a copy of, until the copy is finished. */
  | 'copied-from'
  /** UTC milliseconds; present while a server has the database open. */
  | 'served-since'
  /** JSON: the locks of the servers that have the database open. */
  | 'served-by'
  /** JSON: the settings of the server that has the database open (domain/instance/served-settings.ts). */
  | 'served-settings'
  /** The public base of the URLs of CRLs, for the certificates that the private CA issues. */
  | 'crl-base-url'
  /** Id and hash of the newest event, and the tag over them (audit-mark.ts). */
  | 'audit-mark'
  /** Id and hash of the last pruned event. */
  | 'audit-pruned-through'
  /** How many superseded versions were removed so far. */
  | 'pruned-versions'
  /** Since when the clock has run without a jump, and when it was last checked: UTC milliseconds. */
  | 'steady-clock'
  /** Id of the last delivered event. */
  | 'audit-file-cursor'
  | 'audit-syslog-cursor'
  /** Written when the last audit events could not be, to see whether that has changed. */
  | 'write-attempt'
  /** JSON: targets from before the guard existed, in the form of `--allow-outbound`. */
  | 'kept-outbound-targets'
  /** The tag over them. */
  | 'kept-outbound-tag';

const byKey = compiledQuery((db, key: Expression<string>) =>
  db.selectFrom('settings').select('value').where('key', '=', key),
);

export async function readSetting(
  reader: Reader,
  key: SettingKey,
): Promise<string | number | Buffer | undefined> {
  return (await byKey(reader, key))[0]?.value;
}

/** Sets a value, whether or not the key exists. */
export async function putSetting(
  writer: Writer,
  key: SettingKey,
  value: string | number | Buffer,
): Promise<void> {
  const stored = storedValue(value);
  await writer
    .insertInto('settings')
    .values({ key, value: stored })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value: stored }))
    .execute();
}

/** Deletes values, if they exist. */
export async function deleteSettings(writer: Writer, keys: readonly SettingKey[]): Promise<void> {
  await writer.deleteFrom('settings').where('key', 'in', keys).execute();
}
