/** The tables `replacements` and `replacement_certificates`. */
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Reader, Writer } from '../database.ts';
import type {
  ReplacementCertificatesTable,
  ReplacementState,
  ReplacementsTable,
} from '../schema/schema-replacements.ts';
import { isLabelled } from './object-labels.ts';

export type ReplacementRow = Selectable<ReplacementsTable>;

export type ReplacementCertificateRow = Selectable<ReplacementCertificatesTable>;

/** A certificate of a replacement with what its steps need to know. */
export type ReplacementStepRow = ReplacementCertificateRow &
  Pick<ReplacementRow, 'reason' | 'created_by' | 'deadline_at'>;

export async function insertReplacement(writer: Writer, row: Insertable<ReplacementsTable>): Promise<number> {
  const { id } = await writer
    .insertInto('replacements')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

/** How many rows one statement inserts: each has seven values. */
const rowsAtOnce = 200;

export async function insertReplacementCertificates(
  writer: Writer,
  rows: readonly Insertable<ReplacementCertificatesTable>[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += rowsAtOnce) {
    await writer
      .insertInto('replacement_certificates')
      .values(rows.slice(from, from + rowsAtOnce))
      .execute();
  }
}

export async function findReplacement(reader: Reader, id: number): Promise<ReplacementRow | undefined> {
  return reader.selectFrom('replacements').selectAll().where('id', '=', id).executeTakeFirst();
}

/** At most `limit` replacements, newest first, before the id `before`; only those of `createdBy` if given. */
export async function pageReplacements(
  reader: Reader,
  {
    before,
    limit,
    createdBy,
  }: {
    readonly before?: number | undefined;
    readonly limit: number;
    readonly createdBy?: string | undefined;
  },
): Promise<ReplacementRow[]> {
  let query = reader.selectFrom('replacements').selectAll().orderBy('id', 'desc').limit(limit);
  if (before !== undefined) query = query.where('id', '<', before);
  if (createdBy !== undefined) query = query.where('created_by', '=', createdBy);
  return query.execute();
}

export async function updateReplacement(
  writer: Writer,
  id: number,
  changes: Updateable<ReplacementsTable>,
): Promise<void> {
  await writer.updateTable('replacements').set(changes).where('id', '=', id).execute();
}

/** Whether anything is still done about a certificate of the replacement. */
export async function isReplacementOpen(reader: Reader, replacementId: number): Promise<boolean> {
  const row = await reader
    .selectFrom('replacement_certificates')
    .select('id')
    .where('replacement_id', '=', replacementId)
    .where('finished_at', 'is', null)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** How many certificates of a replacement are in each state. */
export async function countReplacementStates(
  reader: Reader,
  replacementId: number,
): Promise<{ readonly state: ReplacementState; readonly count: number }[]> {
  const rows = await reader
    .selectFrom('replacement_certificates')
    .select('state')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('replacement_id', '=', replacementId)
    .groupBy('state')
    .execute();
  return rows.map(({ state, count }) => ({ state, count: Number(count) }));
}

/** Certificates of a replacement in the order of their ids. */
export async function pageReplacementCertificates(
  reader: Reader,
  replacementId: number,
  {
    after = 0,
    limit,
    state,
    reach,
  }: {
    readonly after?: number | undefined;
    readonly limit: number;
    readonly state?: ReplacementState | undefined;
    /** Only those with any of these labels. */
    readonly reach?: readonly string[] | undefined;
  },
): Promise<ReplacementCertificateRow[]> {
  let query = reader
    .selectFrom('replacement_certificates')
    .selectAll()
    .where('replacement_id', '=', replacementId)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit);
  if (state !== undefined) query = query.where('state', '=', state);
  if (reach !== undefined)
    query = query.where(isLabelled('certificate', 'replacement_certificates.certificate_id', reach));
  return query.execute();
}

/** The certificates whose renewal is due, that with the earliest deadline first. */
export async function dueReplacementRenewals(
  reader: Reader,
  now: number,
  limit: number,
): Promise<ReplacementStepRow[]> {
  return due(reader, now, ['waiting', 'failed'])
    .orderBy('deadline_at')
    .orderBy('next_at')
    .orderBy('replacement_certificates.id')
    .limit(limit)
    .execute();
}

/**
 * The certificates whose renewal, places or revocation are due: first those past their deadline, then those that have
 * been due for longest. Each is due again and again, so that an order by the deadline alone would leave some out.
 */
export async function dueReplacementChecks(
  reader: Reader,
  now: number,
  limit: number,
): Promise<ReplacementStepRow[]> {
  return due(reader, now, ['live', 'issued', 'renewing'])
    .orderBy(({ eb, ref, val }) =>
      eb
        .case()
        .when('deadline_at', '<=', now)
        .then(ref('deadline_at'))
        .else(val(now + 1))
        .end(),
    )
    .orderBy('next_at')
    .orderBy('replacement_certificates.id')
    .limit(limit)
    .execute();
}

function due(reader: Reader, now: number, states: readonly ReplacementState[]) {
  return (
    steps(reader)
      // A literal: only then does SQLite use the partial index.
      .where(sql<boolean>`replacement_certificates.finished_at is null`)
      .where('state', 'in', states)
      .where('next_at', '<=', now)
  );
}

/** The certificate of a replacement; undefined if it is finished. */
export async function findOpenReplacementCertificate(
  reader: Reader,
  id: number,
): Promise<ReplacementStepRow | undefined> {
  return steps(reader)
    .where('replacement_certificates.id', '=', id)
    .where(sql<boolean>`replacement_certificates.finished_at is null`)
    .executeTakeFirst();
}

function steps(reader: Reader) {
  return reader
    .selectFrom('replacement_certificates')
    .innerJoin('replacements', 'replacements.id', 'replacement_certificates.replacement_id')
    .selectAll('replacement_certificates')
    .select(['replacements.reason', 'replacements.created_by', 'replacements.deadline_at']);
}

/** How many renewals of replacements are open. */
export async function countRenewing(reader: Reader): Promise<number> {
  const { count } = await reader
    .selectFrom('replacement_certificates')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where(sql<boolean>`finished_at is null`)
    .where('state', '=', 'renewing')
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Changes a row that is not finished. Returns whether there was one. */
export async function updateReplacementCertificate(
  writer: Writer,
  id: number,
  changes: Updateable<ReplacementCertificatesTable>,
): Promise<boolean> {
  const { numUpdatedRows } = await writer
    .updateTable('replacement_certificates')
    .set(changes)
    .where('id', '=', id)
    .where('finished_at', 'is', null)
    .executeTakeFirst();
  return Number(numUpdatedRows) > 0;
}

/** Ends what is not finished of a replacement. */
export async function cancelReplacementCertificates(
  writer: Writer,
  replacementId: number,
  now: number,
): Promise<void> {
  await writer
    .updateTable('replacement_certificates')
    .set({ state: 'canceled', changed_at: now, finished_at: now })
    .where('replacement_id', '=', replacementId)
    .where('finished_at', 'is', null)
    .execute();
}

/** The versions of a certificate that are being replaced because their keys are compromised. */
export async function findCompromisedVersions(reader: Reader, certificateId: number): Promise<number[]> {
  const rows = await reader
    .selectFrom('replacement_certificates')
    .innerJoin('replacements', 'replacements.id', 'replacement_certificates.replacement_id')
    .select('old_version')
    .where('certificate_id', '=', certificateId)
    .where(sql<boolean>`replacement_certificates.finished_at is null`)
    .where('replacements.reason', '=', 'key-compromised')
    .execute();
  return rows.map(({ old_version }) => old_version);
}
