/** Superseded rows of the table `certificate_versions` that need not be kept, and the renewals before them. */
import type { Reader, Writer } from '../../database.ts';

export type PruningCandidate = {
  readonly id: number;
  readonly name: string;
  readonly current_version: number;
};

/** At most `limit` certificates by id, after the id `after`, with more than `keep` versions so far. */
export async function pageWithVersions(
  reader: Reader,
  { after, keep, limit }: { readonly after: number; readonly keep: number; readonly limit: number },
): Promise<PruningCandidate[]> {
  const rows = await reader
    .selectFrom('certificates')
    .select(['id', 'name', 'current_version'])
    .where('id', '>', after)
    .where('current_version', '>', keep)
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.flatMap((row) =>
    row.current_version === null ? [] : [{ ...row, current_version: row.current_version }],
  );
}

/**
 * At most `limit` versions of a certificate, oldest first, that expired before `expiredBefore`, are older than its last
 * `keep` versions, and are not the current one.
 */
export async function listPastVersions(
  reader: Reader,
  { id, current_version }: PruningCandidate,
  {
    keep,
    expiredBefore,
    limit,
  }: { readonly keep: number; readonly expiredBefore: number; readonly limit: number },
): Promise<number[]> {
  const rows = await reader
    .selectFrom('certificate_versions')
    .select('version')
    .where('certificate_id', '=', id)
    .where('version', '!=', current_version)
    .where('not_after', '<', expiredBefore)
    .where('version', '<', ({ selectFrom }) =>
      selectFrom('certificate_versions as kept')
        .select('kept.version')
        .where('kept.certificate_id', '=', id)
        .orderBy('kept.version', 'desc')
        .limit(1)
        .offset(keep - 1),
    )
    .orderBy('version')
    .limit(limit)
    .execute();
  return rows.map(({ version }) => version);
}

/** Deletes these versions with their keys. */
export async function deletePastVersions(
  writer: Writer,
  certificateId: number,
  versions: readonly number[],
): Promise<void> {
  await writer
    .deleteFrom('certificate_versions')
    .where('certificate_id', '=', certificateId)
    .where('version', 'in', versions)
    .execute();
}

/**
 * Deletes at most `limit` renewals of a certificate, oldest first, that ended before `endedBefore` and stored no
 * version, or one up to `lastVersion`.
 */
export async function deletePastRenewals(
  writer: Writer,
  certificateId: number,
  {
    lastVersion,
    endedBefore,
    limit,
  }: { readonly lastVersion: number; readonly endedBefore: number; readonly limit: number },
): Promise<void> {
  await writer
    .deleteFrom('renewals')
    .where('id', 'in', ({ selectFrom }) =>
      selectFrom('renewals')
        .select('id')
        .where('certificate_id', '=', certificateId)
        .where('finished_at', '<', endedBefore)
        .where((eb) => eb.or([eb('version', 'is', null), eb('version', '<=', lastVersion)]))
        .orderBy('id')
        .limit(limit),
    )
    .execute();
}
