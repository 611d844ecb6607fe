/**
 * The status of certificates, computed in SQL from the clock exactly like the domain's `certificateStatus` (a test
 * compares both), and what monitoring counts and watches.
 */

import { sql } from 'kysely';
import type { Json } from '../../../base/json.ts';
import type { Reader } from '../../database.ts';
import { smallerOf } from '../../engine-sql.ts';
import type { IdRange } from '../id-ranges.ts';

/** The clocks of a vault and of a CA differ by less, in milliseconds. A validity that begins later has not begun. */
export const largestSkew = 300_000;

/** In sort order by status: what needs attention comes first. */
export const statusOrder = ['expired', 'not_yet_valid', 'expiring', 'pending', 'valid', 'disabled'] as const;

type Status = (typeof statusOrder)[number];

/**
 * The index in `statusOrder`. Uses the limits of `certificateStatus`: five minutes, 30 days, and a quarter of the
 * lifetime.
 */
export function statusRank(now: number) {
  const quarter = sql<number>`(certificate_versions.not_after - certificate_versions.not_before) / 4.0`;
  return sql<number>`case
    when certificates.disabled_at is not null then 5
    when certificate_versions.not_after is null then 3
    when certificate_versions.not_after <= ${now} then 0
    when certificate_versions.not_before > ${now + largestSkew} then 1
    when certificate_versions.not_after
      - ${smallerOf(quarter, sql.lit(30 * 86_400_000))} <= ${now} then 2
    else 4 end`;
}

/** The number of certificates per status at `now`, of those in the range; without those of which there is none. */
export async function countByStatus(
  reader: Reader,
  now: number,
  { after, last }: IdRange,
): Promise<[Status, number][]> {
  const rows = await reader
    .selectFrom('certificates')
    .leftJoin('certificate_versions', (join) =>
      join
        .onRef('certificate_versions.certificate_id', '=', 'certificates.id')
        .onRef('certificate_versions.version', '=', 'certificates.current_version'),
    )
    .select([statusRank(now).as('rank'), sql<number>`count(*)`.as('count')])
    .where('certificates.id', '>', after)
    .where('certificates.id', '<=', last)
    .groupBy('rank')
    .execute();
  return rows.flatMap(({ rank, count }) => {
    const status = statusOrder[rank];
    return status === undefined ? [] : [[status, count] satisfies [Status, number]];
  });
}

/** What metrics need per certificate: when it was issued, when it expires, and how often its renewal failed. */
export type WatchedRow = {
  readonly name: string;
  readonly disabled_at: number | null;
  readonly failed_attempts: number;
  /** Of the current version; null if there is none. */
  readonly not_before: number | null;
  readonly not_after: number | null;
  readonly created_at: number | null;
  /** Null for none, and where they were not wanted. */
  readonly labels: Json<string[]> | null;
};

/** At most `limit` certificates by name, after the name `after`. */
export async function pageWatched(
  reader: Reader,
  after: string,
  limit: number,
  { hasLabels }: { readonly hasLabels: boolean },
): Promise<WatchedRow[]> {
  return reader
    .selectFrom('certificates')
    .leftJoin('certificate_versions as version', (join) =>
      join
        .onRef('version.certificate_id', '=', 'certificates.id')
        .onRef('version.version', '=', 'certificates.current_version'),
    )
    .select(['certificates.name', 'certificates.disabled_at', 'certificates.failed_attempts'])
    .select(['version.not_before', 'version.not_after', 'version.created_at'])
    .select(hasLabels ? 'certificates.labels' : sql<null>`null`.as('labels'))
    .where('certificates.name', '>', after)
    .orderBy('certificates.name')
    .limit(limit)
    .execute();
}
