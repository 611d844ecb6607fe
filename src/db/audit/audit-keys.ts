/** The table `audit_keys`: current and previous keys that sign checkpoints of the audit log. */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from '../database.ts';
import type { AuditKeysTable } from '../schema/schema-audit.ts';

export type AuditKeyRow = Selectable<AuditKeysTable>;

/** All keys, newest first; only the newest still has a private key. */
export async function listAuditKeys(reader: Reader): Promise<AuditKeyRow[]> {
  return reader.selectFrom('audit_keys').selectAll().orderBy('id', 'desc').execute();
}

/** Adds a key and deletes the private keys of its predecessors. */
export async function replaceAuditKey(writer: Writer, row: Omit<AuditKeyRow, 'id'>): Promise<void> {
  await writer.updateTable('audit_keys').set({ sealed_private_key: null }).execute();
  await writer.insertInto('audit_keys').values(row).execute();
}
