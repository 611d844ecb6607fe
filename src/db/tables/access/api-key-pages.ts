/** Pages of the table `api_keys`, and which keys may access a certificate. */
import type { Reader } from '../../database.ts';
import { idsLabelled, isLabelled } from '../object-labels.ts';
import { type ListedApiKeyRow, listedColumns } from './api-keys.ts';

/** A page of API keys: at most `limit` after the id `after`, with any label of `reach` and all of `labels`. */
export type ApiKeyPage = {
  readonly after?: number | undefined;
  readonly limit: number;
  readonly labels?: readonly string[] | undefined;
  readonly reach?: readonly string[] | undefined;
  /** The id of an enrollment: only keys that it created. */
  readonly enrollment?: number | undefined;
  /** A time: only keys that are neither revoked nor expired then. */
  readonly activeAt?: number | undefined;
};

/** Keys in the order of their ids. */
export async function pageApiKeys(reader: Reader, page: ApiKeyPage): Promise<ListedApiKeyRow[]> {
  return pageOf(reader, page).execute();
}

function pageOf(reader: Reader, { after = 0, limit, labels = [], reach, enrollment, activeAt }: ApiKeyPage) {
  let query = reader
    .selectFrom('api_keys')
    .select(listedColumns)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit);
  if (reach !== undefined) query = query.where(isLabelled('api-key', 'api_keys.id', reach));
  for (const label of labels) query = query.where(isLabelled('api-key', 'api_keys.id', [label]));
  if (activeAt !== undefined) {
    query = query
      .where('revoked_at', 'is', null)
      .where(({ eb, or }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', activeAt)]));
  }
  return enrollment === undefined ? query : query.where('enrollment_id', '=', enrollment);
}

/**
 * A page of the keys that may access a certificate: those that list it, those for all certificates, and those that list
 * one of its labels.
 */
export async function pageApiKeysOf(
  reader: Reader,
  { id: certificateId, labels }: { readonly id: number; readonly labels: readonly string[] },
  page: ApiKeyPage,
): Promise<ListedApiKeyRow[]> {
  return pageOf(reader, page)
    .where('id', 'in', ({ selectFrom }) => {
      const named = selectFrom('api_key_certificates')
        .select('api_key_id as id')
        .where('certificate_id', '=', certificateId)
        .union(
          // A literal, so that SQLite uses the partial index of such keys.
          selectFrom('api_keys')
            .select('id')
            .where(({ eb, lit }) => eb('any_certificate', '=', lit(1))),
        );
      return labels.length === 0 ? named : named.union(idsLabelled(reader, 'allowlist', labels));
    })
    .execute();
}

/** The ids of the keys that are not revoked and may access certificates with any of the labels, at most `limit`. */
export async function keysAllowedLabels(
  reader: Reader,
  labels: readonly string[],
  limit: number,
): Promise<number[]> {
  const rows = await reader
    .selectFrom('api_keys')
    .select('id')
    .where('id', 'in', idsLabelled(reader, 'allowlist', labels))
    .where('revoked_at', 'is', null)
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}
