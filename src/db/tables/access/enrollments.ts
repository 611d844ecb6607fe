/** The table `enrollments`: what is stored of each enrollment token, never the token. */
import { type Expression, type Selectable, sql } from 'kysely';
import { goneRow, type Recorded, recordedLink } from '../../audit/row-records.ts';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { EnrollmentsTable } from '../../schema/schema-enrollments.ts';
import { indexLabels, isLabelled } from '../object-labels.ts';

export type EnrollmentRow = Selectable<EnrollmentsTable>;

/** An enrollment without the hash of its token and the tag of the row, as shown in lists. */
export type ListedEnrollmentRow = Omit<EnrollmentRow, 'hash' | 'tag'>;

const listed = [
  'id',
  'name',
  'prefix',
  'scopes',
  'any_certificate',
  'certificates',
  'certificate_labels',
  'allowed_networks',
  'bind_address',
  'labels',
  'key_expires_at',
  'max_uses',
  'uses',
  'created_by',
  'created_at',
  'expires_at',
  'revoked_at',
  'last_used_at',
] as const;

const byPrefix = compiledQuery((db, prefix: Expression<string>) =>
  db
    .selectFrom('enrollments')
    .selectAll()
    .select(recordedLink('enrollment', 'enrollments.id'))
    .where('prefix', '=', prefix),
);

export async function findEnrollmentByPrefix(
  reader: Reader,
  prefix: string,
): Promise<(EnrollmentRow & Recorded) | undefined> {
  return (await byPrefix(reader, prefix))[0];
}

export async function findEnrollment(reader: Reader, id: number): Promise<EnrollmentRow | undefined> {
  return reader.selectFrom('enrollments').selectAll().where('id', '=', id).executeTakeFirst();
}

/** A page of enrollments: at most `limit` after the id `after`, with any label of `reach` and all of `labels`. */
export type EnrollmentPage = {
  readonly after?: number | undefined;
  readonly limit: number;
  readonly labels?: readonly string[] | undefined;
  readonly reach?: readonly string[] | undefined;
};

/** Enrollments in the order of their ids. */
export async function pageEnrollments(
  reader: Reader,
  { after = 0, limit, labels = [], reach }: EnrollmentPage,
): Promise<ListedEnrollmentRow[]> {
  let query = reader
    .selectFrom('enrollments')
    .select(listed)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit);
  if (reach !== undefined) query = query.where(isLabelled('enrollment', 'enrollments.id', reach));
  for (const label of labels) query = query.where(isLabelled('enrollment', 'enrollments.id', [label]));
  return query.execute();
}

/** Adds an unused enrollment and returns its id. */
export async function insertEnrollment(
  writer: Writer,
  row: Omit<EnrollmentRow, 'id' | 'uses' | 'revoked_at' | 'last_used_at' | 'tag'>,
): Promise<number> {
  const { id } = await writer.insertInto('enrollments').values(row).returning('id').executeTakeFirstOrThrow();
  return id;
}

/** Counts a use, and returns which one it is; undefined if none is left. */
export async function countEnrollmentUse(
  writer: Writer,
  id: number,
  at: number,
): Promise<number | undefined> {
  const row = await writer
    .updateTable('enrollments')
    .set({ uses: sql`uses + 1`, last_used_at: at })
    .where('id', '=', id)
    .whereRef('uses', '<', 'max_uses')
    .returning('uses')
    .executeTakeFirst();
  return row?.uses;
}

export async function setEnrollmentRevoked(writer: Writer, id: number, at: number): Promise<void> {
  await writer.updateTable('enrollments').set({ revoked_at: at }).where('id', '=', id).execute();
}

/** Deletes the enrollment; its keys keep its id, which no other enrollment gets. */
export async function deleteEnrollmentRow(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('enrollments').where('id', '=', id).execute();
  await indexLabels(writer, 'enrollment', id, []);
  writer.rows.set(`enrollment:${id}`, goneRow);
}

/** The key that the enrollment created for this request of a client. */
export async function findKeyOfRequest(
  reader: Reader,
  id: number,
  request: Buffer,
): Promise<{ readonly id: number } | undefined> {
  return reader
    .selectFrom('api_keys')
    .select('id')
    .where('enrollment_id', '=', id)
    .where('enrollment_request', '=', request)
    .executeTakeFirst();
}

/** The ids of keys of the enrollment that are not revoked and have any label of `reach`, at most `limit`. */
export async function liveKeysOf(
  reader: Reader,
  id: number,
  limit: number,
  reach?: readonly string[],
): Promise<number[]> {
  const query = reader
    .selectFrom('api_keys')
    .select('id')
    .where('enrollment_id', '=', id)
    .where('revoked_at', 'is', null)
    .orderBy('id')
    .limit(limit);
  const rows = await (reach === undefined
    ? query
    : query.where(isLabelled('api-key', 'api_keys.id', reach))
  ).execute();
  return rows.map((row) => row.id);
}
