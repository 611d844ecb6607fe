/** The labels of certificates, in the table `certificates`. */
import type { Expression } from 'kysely';
import { type Json, toJson } from '../../../base/json.ts';
import { certificateLabelsTag, type LabelledRow } from '../../audit/label-tags.ts';
import { type Recorded, recordedLink } from '../../audit/row-records.ts';
import { type Builder, compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { IdRange } from '../id-ranges.ts';
import { indexLabels, isLabelled } from '../object-labels.ts';
import { updateCertificate } from './certificates.ts';

/** Labels as a column has them: null for none. */
export function labelsText(labels: readonly string[]): Json<string[]> | null {
  return labels.length === 0 ? null : (toJson(labels) as Json<string[]>);
}

/** Replaces the labels of a certificate, which an event of the same transaction must record. */
export async function setCertificateLabels(
  writer: Writer,
  { id, name }: Pick<LabelledRow, 'id' | 'name'>,
  labels: readonly string[],
): Promise<void> {
  const text = labelsText(labels);
  const labels_tag = certificateLabelsTag(writer, { id, name, labels: text });
  await updateCertificate(writer, id, { labels: text, labels_tag });
  await indexLabels(writer, 'certificate', id, labels);
}

function labelled(db: Builder) {
  return db
    .selectFrom('certificates')
    .select(['id', 'name', 'labels', 'labels_tag'])
    .select(recordedLink('certificate', 'certificates.name'));
}

const byName = compiledQuery((db, name: Expression<string>) => labelled(db).where('name', '=', name));

/** The labels of the certificate of this name, with what the log says of them. */
export async function findLabels(
  reader: Reader,
  name: string,
): Promise<(LabelledRow & Recorded) | undefined> {
  return (await byName(reader, name))[0];
}

/** The same for several names, and whether the key `allowlistOf` lists each. */
export async function findLabelsNamed(
  reader: Reader,
  names: readonly string[],
  allowlistOf: number | undefined,
): Promise<(LabelledRow & Recorded & { readonly isListed: boolean })[]> {
  const rows = await labelled(reader)
    .select(({ selectFrom }) =>
      selectFrom('api_key_certificates')
        .select('certificate_id')
        .where('api_key_id', '=', allowlistOf ?? 0)
        .whereRef('certificate_id', '=', 'certificates.id')
        .as('listed'),
    )
    .where('name', 'in', names)
    .execute();
  return rows.map(({ listed, ...row }) => ({ ...row, isListed: listed !== null }));
}

/** Names in one statement: databases limit the number of values. */
const namesAtOnce = 500;

/** Whether any of the certificates with these names has any of the labels. */
export async function areAnyLabelled(
  reader: Reader,
  names: readonly string[],
  labels: readonly string[],
): Promise<boolean> {
  for (let from = 0; from < names.length; from += namesAtOnce) {
    const found = await reader
      .selectFrom('certificates')
      .select('id')
      .where('name', 'in', names.slice(from, from + namesAtOnce))
      .where(isLabelled('certificate', 'certificates.id', labels))
      .limit(1)
      .executeTakeFirst();
    if (found !== undefined) return true;
  }
  return false;
}

/** Those of the names whose certificate has any of the labels. */
export async function labelledAmong(
  reader: Reader,
  names: readonly string[],
  labels: readonly string[],
): Promise<ReadonlySet<string>> {
  const labelled = new Set<string>();
  for (let from = 0; from < names.length; from += namesAtOnce) {
    const found = await reader
      .selectFrom('certificates')
      .select('name')
      .where('name', 'in', names.slice(from, from + namesAtOnce))
      .where(isLabelled('certificate', 'certificates.id', labels))
      .execute();
    for (const { name } of found) labelled.add(name);
  }
  return labelled;
}

/** The names of the certificates in a range of ids that have any of the labels. */
export async function namesLabelled(
  reader: Reader,
  labels: readonly string[],
  { after, last }: IdRange,
): Promise<ReadonlySet<string>> {
  const rows = await reader
    .selectFrom('certificates')
    .select('name')
    .where('id', '>', after)
    .where('id', '<=', last)
    .where(isLabelled('certificate', 'certificates.id', labels))
    .execute();
  return new Set(rows.map(({ name }) => name));
}
