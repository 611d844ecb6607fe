/** The table `audit_keys`: what signs checkpoints of the audit log, and what did so before. */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from '../database.ts';
import type { AuditKeysTable } from '../schema/schema-audit.ts';

export type AuditKeyRow = Selectable<AuditKeysTable>;

/** All, the newest first; only that one still has a private key. */
export async function listAuditKeys(reader: Reader): Promise<AuditKeyRow[]> {
  return reader.selectFrom('audit_keys').selectAll().orderBy('id', 'desc').execute();
}

/** Adds a key, and takes the private keys of those before it away. */
export async function replaceAuditKey(writer: Writer, row: Omit<AuditKeyRow, 'id'>): Promise<void> {
  await writer.updateTable('audit_keys').set({ sealed_private_key: null }).execute();
  await writer.insertInto('audit_keys').values(row).execute();
}
