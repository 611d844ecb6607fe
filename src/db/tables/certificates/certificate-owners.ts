/** Which ACME client owns a certificate. */
import type { Reader } from '../../database.ts';

/** The ACME client with this id, or undefined. */
export async function findOwner(
  reader: Reader,
  clientId: number,
): Promise<{ readonly id: number; readonly name: string; readonly revoked_at: number | null } | undefined> {
  return reader
    .selectFrom('acme_clients')
    .select(['id', 'name', 'revoked_at'])
    .where('id', '=', clientId)
    .executeTakeFirst();
}
