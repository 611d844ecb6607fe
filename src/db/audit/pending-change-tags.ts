/**
 * Tags on pending changes, as those on API keys (row-tags.ts): an approval that was written into the database file, or
 * put back after its use, counts for nothing.
 */
import type { Selectable } from 'kysely';
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import { asciiNetstring, netstring, optionalNetstring } from '../../base/netstring.ts';
import type { Writer } from '../database.ts';
import type { PendingChangesTable } from '../schema/schema-access.ts';
import { type Recorded, recordState } from './row-records.ts';

type PendingChange = Selectable<PendingChangesTable>;

/** Whether a pending change is as the vault wrote it last. */
export function pendingChangeFits(integrity: Integrity, row: PendingChange & Recorded): boolean {
  return (
    integrity.fits('pending change', pendingChangeText(row), row.tag) &&
    recordState(integrity, row) === 'current'
  );
}

/** Tags a pending change in its current state; record an event about it in the same transaction. */
export async function tagPendingChange(writer: Writer, row: Omit<PendingChange, 'tag'>): Promise<void> {
  const tag = requireIntegrity(writer).tag('pending change', pendingChangeText(row));
  writer.rows.set(`pending-change:${row.id}`, tag);
  await writer.updateTable('pending_changes').set({ tag }).where('id', '=', row.id).execute();
}

/** What the tag of a pending change is computed over. */
export function pendingChangeText(row: Omit<PendingChange, 'tag'>): string {
  return (
    asciiNetstring(String(row.id)) +
    netstring(row.operation) +
    netstring(row.summary) +
    asciiNetstring(row.digest.toString('hex')) +
    asciiNetstring(row.role) +
    netstring(row.requested_by) +
    asciiNetstring(String(row.requested_at)) +
    asciiNetstring(String(row.expires_at)) +
    optionalNetstring(row.decision) +
    optionalNetstring(row.decided_by) +
    optionalNetstring(row.decided_at) +
    optionalNetstring(row.applied_at)
  );
}
