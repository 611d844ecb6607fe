/** The table `object_labels`: which objects have a label. */
import { type Expression, type SqlBool, sql } from 'kysely';
import type { Builder } from '../compiled-query.ts';
import type { Writer } from '../database.ts';
import type { LabelledKind } from '../schema/schema-labels.ts';

/** Replaces the labels under which an object is found. */
export async function indexLabels(
  writer: Writer,
  kind: LabelledKind,
  id: number,
  labels: readonly string[],
): Promise<void> {
  await writer.deleteFrom('object_labels').where('kind', '=', kind).where('object_id', '=', id).execute();
  if (labels.length === 0) return;
  const rows = labels.map((label) => ({ kind, label, object_id: id }));
  await writer.insertInto('object_labels').values(rows).execute();
}

/** The ids of the objects that have any of the labels, each once; at least one label. */
export function idsLabelled(reader: Builder, kind: LabelledKind, labels: readonly string[]) {
  const ids = reader.selectFrom('object_labels').select('object_id as id').where('kind', '=', kind);
  const [only = '', ...others] = labels;
  // With one label the index has each id once, in order.
  return others.length === 0 ? ids.where('label', '=', only) : ids.distinct().where('label', 'in', labels);
}

/** Whether the object whose id is in this column has any of the labels; at least one label. */
export function isLabelled(
  kind: LabelledKind,
  column: string,
  labels: readonly string[],
): Expression<SqlBool> {
  return sql<SqlBool>`exists (select 1 from object_labels where object_labels.kind = ${kind}
    and object_labels.label in (${sql.join(labels)}) and object_labels.object_id = ${sql.ref(column)})`;
}
