/**
 * What only the private CA issues: usage, URIs, email addresses and fields of the subject, as they are stored and
 * changed.
 */
import { type Json, parseJson, toJson } from '../../base/json.ts';
import type { Usage } from '../../base/leaf-names.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';

/** Undefined for the usual: both usages, no such names, and the first domain as subject. */
export type LeafSettings = {
  readonly usage?: Usage | undefined;
  readonly uris?: readonly string[] | undefined;
  readonly emails?: readonly string[] | undefined;
  readonly subject?: readonly string[] | undefined;
};

/** Settings of an input; null clears one. */
export type LeafChanges = { readonly [Key in keyof LeafSettings]: LeafSettings[Key] | null };

export type LeafColumns = Pick<CertificateRow, 'usage' | 'uris' | 'emails' | 'subject'>;

/** The stored settings of a certificate. */
export function leafSettings({ usage, uris, emails, subject }: LeafColumns): LeafSettings {
  return {
    usage: (usage ?? undefined) as Usage | undefined,
    uris: listIn(uris),
    emails: listIn(emails),
    subject: listIn(subject),
  };
}

/** The columns of those settings that are given. */
export function leafColumns({ usage, uris, emails, subject }: LeafChanges): Partial<LeafColumns> {
  return {
    ...(usage !== undefined && { usage: usage === 'both' ? null : usage }),
    ...(uris !== undefined && { uris: uris && toJson(uris) }),
    ...(emails !== undefined && { emails: emails && toJson(emails) }),
    ...(subject !== undefined && { subject: subject && toJson(subject) }),
  };
}

/** Whether the next version has to differ from the current one. */
export function hasOtherLeaf(before: LeafColumns, changes: Partial<LeafColumns>): boolean {
  return Object.entries(changes).some(([column, value]) => before[column as keyof LeafColumns] !== value);
}

function listIn(stored: Json<string[]> | null): string[] | undefined {
  return stored === null ? undefined : parseJson(stored);
}
