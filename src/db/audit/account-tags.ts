/**
 * Tags on the accounts of ACME clients, as those on API keys (row-tags.ts): an account with the key of a stranger could order what its
 * client may order.
 */
import type { Integrity } from '../../base/integrity.ts';
import { requireIntegrity } from '../../base/integrity.ts';
import { asciiNetstring, netstring } from '../../base/netstring.ts';
import type { Reader, Writer } from '../database.ts';
import type { AcmeClientAccountRow } from '../tables/acme-client-accounts.ts';

/** The fields of an account that grant rights, and its tag. */
type TaggedAccount = Omit<AcmeClientAccountRow, 'contacts' | 'created_at'>;

/** Whether an account is as the vault wrote it. */
export function clientAccountFits(integrity: Integrity, row: TaggedAccount): boolean {
  return integrity.fits('acme account', accountText(row), row.tag);
}

/** The tag of an account with these fields. */
export function clientAccountTag(writer: Writer, row: Omit<TaggedAccount, 'tag'>): Buffer {
  return requireIntegrity(writer).tag('acme account', accountText(row));
}

/** Labels of the accounts without a valid tag. Reads all rows. */
export async function listForgedAccounts(reader: Reader, integrity: Integrity): Promise<string[]> {
  const rows = await reader.selectFrom('acme_client_accounts').selectAll().orderBy('id').execute();
  return rows.flatMap((row) =>
    clientAccountFits(integrity, row) ? [] : `account ${row.id} of an ACME client`,
  );
}

function accountText(row: Omit<TaggedAccount, 'tag'>): string {
  const numbers = [row.id, row.acme_client_id, row.issuer_id].map((number) => asciiNetstring(String(number)));
  return numbers.join('') + asciiNetstring(row.thumbprint) + netstring(row.jwk) + asciiNetstring(row.status);
}
