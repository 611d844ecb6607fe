/**
 * Tags on the labels of certificates, as those on API keys (row-tags.ts): a label that is written into the database
 * file would open a certificate to all keys and people that are granted it.
 */
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import type { Json } from '../../base/json.ts';
import { asciiNetstring, netstring } from '../../base/netstring.ts';
import type { Writer } from '../database.ts';
import { goneRow, type Recorded, recordState } from './row-records.ts';

/** The labels of a certificate, with what they belong to. */
export type LabelledRow = {
  readonly id: number;
  readonly name: string;
  readonly labels: Json<string[]> | null;
  readonly labels_tag: Buffer | null;
};

/** Whether the labels of a certificate are as the vault wrote them last; those that it does not have grant nothing. */
export function certificateLabelsFit(integrity: Integrity, row: LabelledRow & Recorded): boolean {
  if (row.labels === null) return true;
  const state = { tag: row.labels_tag, recorded: row.recorded };
  return (
    integrity.fits('certificate labels', certificateLabelsText(row), row.labels_tag) &&
    recordState(integrity, state) !== 'old'
  );
}

/** The tag of these labels; the log records it at the end of the transaction. Null without labels. */
export function certificateLabelsTag(writer: Writer, row: Omit<LabelledRow, 'labels_tag'>): Buffer | null {
  const tag =
    row.labels === null
      ? null
      : requireIntegrity(writer).tag('certificate labels', certificateLabelsText(row));
  writer.rows.set(`certificate:${row.name}`, tag ?? goneRow);
  return tag;
}

/** What the tag of labels is computed over. */
export function certificateLabelsText({ id, name, labels }: Omit<LabelledRow, 'labels_tag'>): string {
  return asciiNetstring(String(id)) + netstring(name) + netstring(labels ?? '');
}

/** Empty for rows without labels, so that tags from before these existed stay valid. */
export function labelsText(name: string, labels: Json<string[]> | null): string {
  return labels === null ? '' : asciiNetstring(name) + netstring(labels);
}
