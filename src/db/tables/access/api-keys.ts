/** The table `api_keys`: what is stored of each key, never the raw value. */
import { type Expression, type Selectable, sql } from 'kysely';
import { parseJsonOr } from '../../../base/json.ts';
import { comparableLabel } from '../../../base/label.ts';
import { mayReadLike } from '../../alike-names.ts';
import { goneRow, type Recorded, recordedLink } from '../../audit/row-records.ts';
import type { Allowlist } from '../../audit/row-tags.ts';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import { jsonPairs } from '../../engine-sql.ts';
import type { ApiKeysTable } from '../../schema/schema-access.ts';
import { indexLabels } from '../object-labels.ts';

export type ApiKeyRow = Selectable<ApiKeysTable>;

/** A key without the hashes of its raw values and the tag of the row, as shown in lists. */
export type ListedApiKeyRow = Omit<
  ApiKeyRow,
  'hash' | 'previous_hash' | 'tag' | 'client_certificate_id' | 'enrollment_request'
>;

/** The client certificate that a key is bound to, or nulls. */
export type Binding = Pick<ApiKeyRow, 'client_certificate_id' | 'client_certificate'>;

/** The columns that lists show. */
export const listedColumns = [
  'id',
  'name',
  'prefix',
  'scopes',
  'any_certificate',
  'allowed_networks',
  'created_at',
  'expires_at',
  'revoked_at',
  'last_used_at',
  'last_used_ip',
  'previous_prefix',
  'previous_expires_at',
  'profiles',
  'role',
  'client_certificate',
  'labels',
  'certificate_labels',
  'reach',
  'enrollment_id',
] as const;

const byPrefix = compiledQuery((db, prefix: Expression<string>, previous: Expression<string>) =>
  db
    .selectFrom('api_keys')
    .selectAll()
    .select([
      sql<Allowlist>`(select ${jsonPairs('certificates.id', 'certificates.name')} from api_key_certificates
        join certificates on certificates.id = certificate_id where api_key_id = api_keys.id)`.as(
        'allowlist',
      ),
      recordedLink('api-key', 'api_keys.id'),
    ])
    .where(({ eb, or }) => or([eb('prefix', '=', prefix), eb('previous_prefix', '=', previous)])),
);

/** The key whose current or previous secret has this prefix, with the ids and names of its allowlist. */
export async function findApiKeyByPrefix(
  reader: Reader,
  prefix: string,
): Promise<(ApiKeyRow & Recorded & { allowlist: Allowlist }) | undefined> {
  return (await byPrefix(reader, prefix, prefix))[0];
}

export async function findApiKey(reader: Reader, id: number): Promise<ApiKeyRow | undefined> {
  return reader.selectFrom('api_keys').selectAll().where('id', '=', id).executeTakeFirst();
}

/**
 * The oldest key other than `own` that is not revoked and has a name that reads like this one; there may be several
 * from before names were unique.
 */
export async function findApiKeyLike(
  reader: Reader,
  name: string,
  own?: number,
): Promise<Pick<ApiKeyRow, 'id' | 'name'> | undefined> {
  const wanted = comparableLabel(name);
  const keys = await reader
    .selectFrom('api_keys')
    .select(['id', 'name'])
    .where('revoked_at', 'is', null)
    .where(mayReadLike(wanted))
    .orderBy('id')
    .execute();
  return keys.find((key) => key.id !== own && comparableLabel(key.name) === wanted);
}

/** The names that several keys have that are not revoked, each with the ids of its keys, at most `limit`. */
export async function listSharedNames(
  reader: Reader,
  limit: number,
): Promise<{ readonly name: string; readonly ids: readonly number[] }[]> {
  const shared = await reader
    .selectFrom('api_keys')
    .select('name')
    .where('revoked_at', 'is', null)
    .groupBy('name')
    .having(({ fn }) => fn.countAll(), '>', 1)
    .orderBy('name')
    .limit(limit)
    .execute();
  if (shared.length === 0) return [];
  const names = shared.map(({ name }) => name);
  const keys = await reader
    .selectFrom('api_keys')
    .select(['id', 'name'])
    .where('revoked_at', 'is', null)
    .where('name', 'in', names)
    .orderBy('id')
    .execute();
  return names.map((name) => ({ name, ids: keys.filter((key) => key.name === name).map(({ id }) => id) }));
}

export async function listApiKeys(reader: Reader): Promise<ListedApiKeyRow[]> {
  return reader.selectFrom('api_keys').select(listedColumns).orderBy('id').execute();
}

/** The keys that are not revoked and have one of these names, or the name of a key with one of these ids. */
export async function listApiKeysNamed(
  reader: Reader,
  names: readonly string[],
  ids: readonly number[],
): Promise<ListedApiKeyRow[]> {
  return reader
    .selectFrom('api_keys')
    .select(listedColumns)
    .where('revoked_at', 'is', null)
    .where(({ eb, or, selectFrom }) =>
      or([
        eb('name', 'in', names),
        eb('name', 'in', selectFrom('api_keys').select('name').where('id', 'in', ids)),
      ]),
    )
    .orderBy('id')
    .execute();
}

/** The keys that are not revoked and are confined to profiles, by id. */
export async function listConfinedKeys(
  reader: Reader,
): Promise<{ readonly id: number; readonly name: string; readonly profiles: readonly string[] }[]> {
  const rows = await reader
    .selectFrom('api_keys')
    .select(['id', 'name', 'profiles'])
    .where('profiles', 'is not', null)
    .where('revoked_at', 'is', null)
    .orderBy('id')
    .execute();
  return rows.map(({ id, name, profiles }) => ({ id, name, profiles: parseJsonOr(profiles, []) }));
}

export async function countApiKeys(reader: Reader): Promise<number> {
  const { count } = await reader
    .selectFrom('api_keys')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

/** Columns that keys once did not have, and whose nulls change nothing. */
type LaterColumns = Pick<ApiKeyRow, 'profiles' | 'role' | keyof Binding | LabelColumn | keyof KeyOrigin>;

/** The enrollment that created a key, and what its client chose for a retry. */
export type KeyOrigin = Pick<ApiKeyRow, 'enrollment_id' | 'enrollment_request'>;

/** What has labels of the key, of certificates, and of its reach. */
export type LabelColumn = 'labels' | 'certificate_labels' | 'reach';

/** Adds an active, unused key and returns its id. */
export async function insertApiKey(
  writer: Writer,
  row: Omit<
    ApiKeyRow,
    'id' | 'revoked_at' | 'last_used_at' | 'last_used_ip' | 'tag' | keyof LaterColumns | keyof PreviousSecret
  > &
    Partial<LaterColumns>,
): Promise<number> {
  const { id } = await writer.insertInto('api_keys').values(row).returning('id').executeTakeFirstOrThrow();
  return id;
}

/**
 * Changes the rights of a key. Always sets the name too, because a change of the networks alone would not update the
 * generation.
 */
export async function updateApiKey(
  writer: Writer,
  id: number,
  row: Pick<
    ApiKeyRow,
    | ('name' | 'scopes' | 'any_certificate' | 'allowed_networks' | 'expires_at' | 'profiles' | 'role')
    | keyof Binding
    | LabelColumn
  >,
): Promise<void> {
  await writer.updateTable('api_keys').set(row).where('id', '=', id).execute();
}

/** The secret that a rotation replaced, or nulls if it ended at once. */
export type PreviousSecret = Pick<ApiKeyRow, 'previous_prefix' | 'previous_hash' | 'previous_expires_at'>;

/** Replaces the secret of a key. */
export async function setSecret(
  writer: Writer,
  id: number,
  row: Pick<ApiKeyRow, 'prefix' | 'hash'> & PreviousSecret,
): Promise<void> {
  await writer.updateTable('api_keys').set(row).where('id', '=', id).execute();
}

export async function setRevoked(writer: Writer, id: number, at: number): Promise<void> {
  await writer.updateTable('api_keys').set({ revoked_at: at }).where('id', '=', id).execute();
}

/** Deletes the key and, by cascade, its allowlist. */
export async function deleteApiKeyRow(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('api_keys').where('id', '=', id).execute();
  await indexLabels(writer, 'api-key', id, []);
  await indexLabels(writer, 'allowlist', id, []);
  writer.rows.set(`api-key:${id}`, goneRow);
}
