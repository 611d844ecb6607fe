/**
 * Searches the table `certificates`: filtered, sorted and counted. The status of a certificate is computed in SQL from
 * the clock, exactly like the domain's `certificateStatus`; a test compares both.
 */
import { sql } from 'kysely';
import type { Reader } from '../database.ts';
import { containsText, smallerOf } from '../engine-sql.ts';
import {
  type CertificatePage,
  type ShownCertificateRow,
  shownOfVersion,
  shownVersion,
  withCurrentVersions,
} from './certificate-summaries.ts';

/** In sort order by status: what needs attention comes first. */
export const statusOrder = ['expired', 'expiring', 'pending', 'valid', 'disabled'] as const;

export const certificateSorts = ['name', 'expiry', 'status'] as const;

export type CertificateSearch = Omit<CertificatePage, 'after'> & {
  /** UTC milliseconds, for the status. */
  readonly now: number;
  /** Part of the name or of a domain. */
  readonly search?: string | undefined;
  readonly status?: (typeof statusOrder)[number] | undefined;
  /** The name of the issuer; null for imported certificates. */
  readonly issuer?: string | null | undefined;
  /** Only certificates that expire by this time, in UTC milliseconds, or have expired. */
  readonly expiresBy?: number | undefined;
  readonly sort?: (typeof certificateSorts)[number];
  /** A cursor that `cursorOf` created from the last row of the previous page. */
  readonly after?: SearchCursor | undefined;
};

/** The end of a page: the name, and the sort value if it is not the name. */
export type SearchCursor = { readonly name: string; readonly key?: number | undefined };

export type FoundCertificate = ShownCertificateRow & { readonly sort_key: number };

/** Certificates without a version come last when sorted by expiry. */
const never = Number.MAX_SAFE_INTEGER;

/** A page of the matching certificates in the requested order, with ties sorted by name. */
export async function searchCertificates(
  reader: Reader,
  { now, after, limit, allowlistOf, search, status, issuer, expiresBy, sort = 'name' }: CertificateSearch,
): Promise<FoundCertificate[]> {
  const key = sort === 'expiry' ? expiry : sort === 'status' ? rank(now) : sql<number>`0`;
  let query = shown(reader).select(key.as('sort_key'));
  if (sort === 'name') {
    if (after !== undefined) query = query.where('certificates.name', '>', after.name);
  } else {
    query = query.orderBy('sort_key');
    if (after !== undefined) {
      query = query.where(sql<boolean>`(${key}, certificates.name) > (${after.key ?? 0}, ${after.name})`);
    }
  }
  if (allowlistOf !== undefined) {
    query = query.where('certificates.id', 'in', ({ selectFrom }) =>
      selectFrom('api_key_certificates').select('certificate_id').where('api_key_id', '=', allowlistOf),
    );
  }
  if (search !== undefined) {
    const part = search.toLowerCase();
    query = query.where(
      sql<boolean>`(${containsText(sql`lower(certificates.name)`, part)}
        or ${containsText(sql`certificates.domains`, part)})`,
    );
  }
  if (status !== undefined) query = query.where(sql<boolean>`${rank(now)} = ${statusOrder.indexOf(status)}`);
  if (issuer === null) query = query.where('certificates.issuer_id', 'is', null);
  else if (issuer !== undefined) {
    query = query.where('certificates.issuer_id', '=', ({ selectFrom }) =>
      selectFrom('issuers').select('id').where('name', '=', issuer),
    );
  }
  if (expiresBy !== undefined) query = query.where('certificate_versions.not_after', '<=', expiresBy);
  const rows = await query.orderBy('certificates.name').limit(limit).execute();
  return rows.map(found);
}

/** Only displayed columns: a page has a thousand rows, and each column of each row costs time. */
function shown(reader: Reader) {
  return withCurrentVersions(reader)
    .select([
      'certificates.name',
      'certificates.domains',
      'certificates.key_type',
      'issuers.name as issuer_name',
    ])
    .select(['certificates.disabled_at', 'certificates.auto_renew', 'certificates.created_at'])
    .select(['certificates.current_version', 'certificates.next_renewal_at'])
    .select(['certificates.last_error', 'certificates.last_attempt_at'])
    .select(shownOfVersion);
}

type ShownRow = Awaited<ReturnType<ReturnType<typeof shown>['executeTakeFirstOrThrow']>>;

/** A row with the current version as a nested object. */
function found(row: ShownRow & { readonly sort_key: number }): FoundCertificate {
  return {
    name: row.name,
    domains: row.domains,
    key_type: row.key_type,
    issuer_name: row.issuer_name,
    disabled_at: row.disabled_at,
    auto_renew: row.auto_renew,
    created_at: row.created_at,
    current_version: row.current_version,
    next_renewal_at: row.next_renewal_at,
    last_error: row.last_error,
    last_attempt_at: row.last_attempt_at,
    sort_key: row.sort_key,
    current: shownVersion(row),
  };
}

/** The number of certificates per status at `now`. */
export async function countByStatus(
  reader: Reader,
  now: number,
): Promise<Record<(typeof statusOrder)[number], number>> {
  const rows = await reader
    .selectFrom('certificates')
    .leftJoin('certificate_versions', (join) =>
      join
        .onRef('certificate_versions.certificate_id', '=', 'certificates.id')
        .onRef('certificate_versions.version', '=', 'certificates.current_version'),
    )
    .select([rank(now).as('rank'), sql<number>`count(*)`.as('count')])
    .groupBy('rank')
    .execute();
  const counts = { expired: 0, expiring: 0, pending: 0, valid: 0, disabled: 0 };
  for (const { rank: index, count } of rows) {
    const status = statusOrder[index];
    if (status !== undefined) counts[status] = count;
  }
  return counts;
}

const expiry = sql<number>`coalesce(certificate_versions.not_after, ${sql.lit(never)})`;

/** What metrics need per certificate: when it was issued, when it expires, and how often its renewal failed. */
export type WatchedRow = {
  readonly name: string;
  readonly disabled_at: number | null;
  readonly failed_attempts: number;
  /** Of the current version; null if there is none. */
  readonly not_before: number | null;
  readonly not_after: number | null;
  readonly created_at: number | null;
};

/** At most `limit` certificates by name, after the name `after`. */
export async function pageWatched(reader: Reader, after: string, limit: number): Promise<WatchedRow[]> {
  return reader
    .selectFrom('certificates')
    .leftJoin('certificate_versions as version', (join) =>
      join
        .onRef('version.certificate_id', '=', 'certificates.id')
        .onRef('version.version', '=', 'certificates.current_version'),
    )
    .select(['certificates.name', 'certificates.disabled_at', 'certificates.failed_attempts'])
    .select(['version.not_before', 'version.not_after', 'version.created_at'])
    .where('certificates.name', '>', after)
    .orderBy('certificates.name')
    .limit(limit)
    .execute();
}

/** The index in `statusOrder`. Uses the limits of `certificateStatus`: 30 days, and a quarter of the lifetime. */
function rank(now: number) {
  const quarter = sql<number>`(certificate_versions.not_after - certificate_versions.not_before) / 4.0`;
  return sql<number>`case
    when certificates.disabled_at is not null then 4
    when certificate_versions.not_after is null then 2
    when certificate_versions.not_after <= ${now} then 0
    when certificate_versions.not_after
      - ${smallerOf(quarter, sql.lit(30 * 86_400_000))} <= ${now} then 1
    else 3 end`;
}
