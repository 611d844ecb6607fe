/**
 * Tags on the accounts of ACME clients, as those on API keys (row-tags.ts): an account with the key of a stranger could
 * order what its client may order.
 */
import type { Selectable } from 'kysely';
import type { Integrity } from '../../base/integrity.ts';
import { requireIntegrity } from '../../base/integrity.ts';
import { asciiNetstring, netstring } from '../../base/netstring.ts';
import type { Writer } from '../database.ts';
import type { AcmeClientAccountsTable } from '../schema/schema-acme-server.ts';
import { type Recorded, recordState } from './row-records.ts';

/** The fields of an account that grant rights, and its tag. */
type TaggedAccount = Omit<Selectable<AcmeClientAccountsTable>, 'contacts' | 'created_at'>;

/** Whether an account is as the vault wrote it last. */
export function clientAccountFits(integrity: Integrity, row: TaggedAccount & Recorded): boolean {
  return (
    integrity.fits('acme account', clientAccountText(row), row.tag) && recordState(integrity, row) !== 'old'
  );
}

/** The tag of an account with these fields, which the log records at the end of the transaction. */
export function clientAccountTag(writer: Writer, row: Omit<TaggedAccount, 'tag'>): Buffer {
  const tag = requireIntegrity(writer).tag('acme account', clientAccountText(row));
  writer.rows.set(`acme-client-account:${row.id}`, tag);
  return tag;
}

/** What the tag of an account is computed over. */
export function clientAccountText(row: Omit<TaggedAccount, 'tag'>): string {
  const numbers = [row.id, row.acme_client_id, row.issuer_id].map((number) => asciiNetstring(String(number)));
  return numbers.join('') + asciiNetstring(row.thumbprint) + netstring(row.jwk) + asciiNetstring(row.status);
}
