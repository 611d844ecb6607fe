/** Replacements as the API and the commands show them. */
import { parseJsonOr } from '../../base/json.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import type { ReplacementReason, ReplacementState } from '../../db/schema/schema-replacements.ts';
import {
  countReplacementStates,
  pageReplacementCertificates,
  pageReplacements,
  type ReplacementCertificateRow,
  type ReplacementRow,
} from '../../db/tables/replacements.ts';
import type { DatabaseContext } from '../contexts.ts';
import { requireReplacement } from './replacements.ts';

export const replacementStates = ['running', 'finished', 'canceled'] as const;

/** In the order in which a certificate passes through them. */
export const certificateStates = [
  ...(['waiting', 'renewing', 'issued', 'live', 'revoked'] as const),
  ...(['failed', 'canceled'] as const),
] as const satisfies readonly ReplacementState[];

export type ReplacementView = {
  id: number;
  state: (typeof replacementStates)[number];
  reason: ReplacementReason;
  /** How the certificates were selected. */
  issuer: string | null;
  labels: string[];
  certificate: string | null;
  created_by: string;
  created_at: string;
  deadline_at: string;
  finished_at: string | null;
  canceled_by: string | null;
  /** How many certificates are in each state. */
  certificates: Record<ReplacementState, number>;
};

export type ReplacedCertificateView = {
  certificate: string;
  state: ReplacementState;
  old_version: number;
  new_version: number | null;
  /** Deployments and endpoints with the new version, and all that are known. */
  live: number;
  places: number;
  /** Why the last attempt failed. */
  error: string | null;
  /** Whether nothing more is done about it. */
  finished: boolean;
  changed_at: string;
};

/** A page of replacements, newest first; only those of `createdBy` if given. */
export async function pageOfReplacements(
  vault: DatabaseContext,
  page: Parameters<typeof pageReplacements>[1],
): Promise<ReplacementView[]> {
  const rows = await pageReplacements(vault.db.reader, page);
  const views: ReplacementView[] = [];
  for (const row of rows) views.push(await viewOf(vault, row));
  return views;
}

/** One replacement. Throws `replacement_not_found`. */
export async function viewReplacement(vault: DatabaseContext, id: number): Promise<ReplacementView> {
  return viewOf(vault, await requireReplacement(vault.db.reader, id));
}

/** A certificate of a replacement, with the id that pages continue after. */
export type ReplacedCertificate = ReplacementCertificateRow;

/** A page of the certificates of a replacement, in the order of their ids. */
export function pageOfReplaced(
  { db }: DatabaseContext,
  id: number,
  page: Parameters<typeof pageReplacementCertificates>[2],
): Promise<ReplacedCertificate[]> {
  return pageReplacementCertificates(db.reader, id, page);
}

/** A certificate of a replacement as the API and the commands show it. */
export function replacedView(row: ReplacedCertificate): ReplacedCertificateView {
  const { name, state, old_version, new_version, live, places, error } = row;
  return {
    ...{ certificate: name, state, old_version, new_version, live, places, error },
    finished: row.finished_at !== null,
    changed_at: formatTimestamp(row.changed_at),
  };
}

async function viewOf({ db }: DatabaseContext, row: ReplacementRow): Promise<ReplacementView> {
  const counts = Object.fromEntries(certificateStates.map((state) => [state, 0])) as Record<
    ReplacementState,
    number
  >;
  for (const { state, count } of await countReplacementStates(db.reader, row.id)) counts[state] = count;
  const ended = row.canceled_by === null ? 'finished' : 'canceled';
  return {
    id: row.id,
    state: row.finished_at === null ? 'running' : ended,
    reason: row.reason,
    issuer: row.issuer,
    labels: parseJsonOr(row.labels, []),
    certificate: row.certificate,
    created_by: row.created_by,
    created_at: formatTimestamp(row.created_at),
    deadline_at: formatTimestamp(row.deadline_at),
    finished_at: formatTimestampOrNull(row.finished_at),
    canceled_by: row.canceled_by,
    certificates: counts,
  };
}
