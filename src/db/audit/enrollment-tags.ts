/**
 * Tags on enrollments, as those on API keys (row-tags.ts): a token, its rights or its count of uses that are written
 * into the database file would create API keys.
 */
import type { Selectable } from 'kysely';
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import { asciiNetstring, netstring, optionalNetstring } from '../../base/netstring.ts';
import type { Writer } from '../database.ts';
import type { ApiKeysTable } from '../schema/schema-access.ts';
import type { EnrollmentsTable } from '../schema/schema-enrollments.ts';
import { labelsText } from './label-tags.ts';
import { isRecorded, type Recorded, recordedLink, recordState } from './row-records.ts';

/** The fields of an enrollment that grant rights. */
export type TaggedEnrollment = Omit<
  Selectable<EnrollmentsTable>,
  'created_by' | 'created_at' | 'last_used_at'
>;

/** Whether an enrollment is as the vault wrote it last. */
export function enrollmentFits(integrity: Integrity, row: TaggedEnrollment & Recorded): boolean {
  // Both, so that it takes the same time for any token.
  const fits = integrity.fits('enrollment', enrollmentText(row), row.tag);
  // Only a recorded row: its use writes it again, and would make a restored one look authentic.
  return recordState(integrity, row) === 'current' && fits;
}

/** Whether the current row of an enrollment is as the vault wrote it last; false if the id does not exist. */
export async function isEnrollmentAuthentic(writer: Writer, id: number): Promise<boolean> {
  const row = await readEnrollment(writer, id);
  if (row === undefined) return false;
  const integrity = requireIntegrity(writer);
  const fits = integrity.fits('enrollment', enrollmentText(row), row.tag);
  return fits && isRecorded(writer, integrity, `enrollment:${id}`, row);
}

/** Tags an enrollment in its current state. Check `isEnrollmentAuthentic` before a change. */
export async function tagEnrollment(writer: Writer, id: number): Promise<void> {
  const row = await readEnrollment(writer, id);
  if (row === undefined) return;
  const tag = requireIntegrity(writer).tag('enrollment', enrollmentText(row));
  writer.rows.set(`enrollment:${id}`, tag);
  await writer.updateTable('enrollments').set({ tag }).where('id', '=', id).execute();
}

async function readEnrollment(
  writer: Writer,
  id: number,
): Promise<(TaggedEnrollment & Recorded) | undefined> {
  return writer
    .selectFrom('enrollments')
    .selectAll()
    .select(recordedLink('enrollment', 'enrollments.id'))
    .where('id', '=', id)
    .executeTakeFirst();
}

/** What the tag of an enrollment is computed over. */
export function enrollmentText(row: TaggedEnrollment): string {
  return (
    asciiNetstring(String(row.id)) +
    netstring(row.name) +
    netstring(row.prefix) +
    asciiNetstring(row.hash.toString('hex')) +
    netstring(row.scopes) +
    asciiNetstring(String(row.any_certificate)) +
    netstring(row.certificates) +
    netstring(row.allowed_networks) +
    asciiNetstring(String(row.bind_address)) +
    optionalNetstring(row.key_expires_at) +
    asciiNetstring(String(row.max_uses)) +
    asciiNetstring(String(row.uses)) +
    asciiNetstring(String(row.expires_at)) +
    optionalNetstring(row.revoked_at) +
    labelsText('labels', row.labels) +
    labelsText('certificate labels', row.certificate_labels)
  );
}

/** What the tag of an API key has about the enrollment that created it; empty for other keys. */
export function keyOriginText({
  enrollment_id: id,
  enrollment_request: request,
}: Pick<Selectable<ApiKeysTable>, 'enrollment_id' | 'enrollment_request'>): string {
  if (id === null && request === null) return '';
  return (
    asciiNetstring('enrollment') + optionalNetstring(id) + optionalNetstring(request?.toString('hex') ?? null)
  );
}
