/** The table `api_key_certificates`: the allowlists of keys that are limited to some certificates. */
import type { Reader, Writer } from '../../database.ts';
import { numbersIn } from '../../engine-sql.ts';

/** The allowlists of these keys: key id and name, ordered by both. */
export async function allowlistsOf(
  reader: Reader,
  apiKeyIds: readonly number[],
): Promise<{ api_key_id: number; name: string }[]> {
  return reader
    .selectFrom('api_key_certificates')
    .innerJoin('certificates', 'certificates.id', 'api_key_certificates.certificate_id')
    .select(['api_key_id', 'certificates.name'])
    .where('api_key_id', 'in', numbersIn(apiKeyIds))
    .orderBy('api_key_id')
    .orderBy('certificates.name')
    .execute();
}

/** Databases limit the number of values per statement. */
const rowsAtOnce = 500;

export async function insertAllowlist(
  writer: Writer,
  apiKeyId: number,
  certificateIds: readonly number[],
): Promise<void> {
  for (let start = 0; start < certificateIds.length; start += rowsAtOnce) {
    const ids = certificateIds.slice(start, start + rowsAtOnce);
    await writer
      .insertInto('api_key_certificates')
      .values(ids.map((certificate_id) => ({ api_key_id: apiKeyId, certificate_id })))
      .execute();
  }
}

/** Deletes the allowlist of one key. */
export async function clearAllowlist(writer: Writer, apiKeyId: number): Promise<void> {
  await writer.deleteFrom('api_key_certificates').where('api_key_id', '=', apiKeyId).execute();
}

/** The keys that list a certificate, including revoked ones. */
export async function apiKeysNaming(
  reader: Reader,
  certificateId: number,
): Promise<{ id: number; name: string; revoked_at: number | null }[]> {
  return reader
    .selectFrom('api_key_certificates')
    .innerJoin('api_keys', 'api_keys.id', 'api_key_certificates.api_key_id')
    .select(['api_keys.id', 'api_keys.name', 'api_keys.revoked_at'])
    .where('certificate_id', '=', certificateId)
    .orderBy('api_keys.id')
    .execute();
}

/** Removes a certificate from all allowlists. */
export async function removeFromAllowlists(writer: Writer, certificateId: number): Promise<void> {
  await writer.deleteFrom('api_key_certificates').where('certificate_id', '=', certificateId).execute();
}
