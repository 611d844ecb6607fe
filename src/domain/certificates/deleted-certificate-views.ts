/** What is shown of deleted certificates. */
import { parseJson } from '../../base/json.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { listDeletedCertificates } from '../../db/tables/certificates/deleted-certificates.ts';
import type { DatabaseContext } from '../contexts.ts';
import type { DeletedFacts } from './deleted-certificates.ts';

export type DeletedCertificateView = {
  id: number;
  name: string;
  domains: string[];
  issuer: string | null;
  deleted_at: string;
  /** An actor in the format of the audit log. */
  deleted_by: string;
  /** The API keys whose allowlists named it. */
  api_keys: { id: number; name: string }[];
  /** When it is destroyed with its keys. */
  purge_at: string;
};

/** Deleted certificates in the order of deletion; `keepFor` is how long they are kept, in milliseconds. */
export async function listDeleted(
  { db }: DatabaseContext,
  keepFor: number,
  page: { readonly after?: number | undefined; readonly limit: number },
): Promise<DeletedCertificateView[]> {
  return (await listDeletedCertificates(db.reader, page)).map((row) => {
    const { settings, issuer, api_keys } = parseJson(row.facts) as DeletedFacts;
    return {
      id: row.id,
      name: row.name,
      domains: parseJson(settings.domains),
      issuer,
      deleted_at: formatTimestamp(row.deleted_at),
      deleted_by: row.deleted_by,
      api_keys: [...api_keys],
      purge_at: formatTimestamp(row.deleted_at + keepFor),
    };
  });
}
