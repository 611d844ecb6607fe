/** What only the ACME client that owns a certificate may do: renew it, and say what is in it. */
import { Problem } from '../../base/problem.ts';
import type { Reader } from '../../db/database.ts';
import { findOwner } from '../../db/tables/certificates/certificate-owners.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';

/**
 * Throws `not_renewable` for a certificate of an ACME client: what the vault issued itself would never reach the
 * client.
 */
export async function refuseOwned(
  reader: Reader,
  { name, acme_client_id: id }: Pick<CertificateRow, 'name' | 'acme_client_id'>,
): Promise<void> {
  const owner = id === null ? undefined : await findOwner(reader, id);
  if (owner === undefined) return;
  throw new Problem('not_renewable', {
    detail: `Certificate "${name}" belongs to the ACME client "${owner.name}", which renews and changes it.`,
    hint: 'Renew or change it on the machine where the client runs. You can only revoke or delete it here.',
  });
}
