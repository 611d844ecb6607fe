/**
 * Searches the table `certificates`: filtered and sorted. A filter or an order for which there is no index looks
 * through all certificates, so it is applied to one span of them per query.
 */
import { type Expression, sql } from 'kysely';
import { type Builder, compiledQuery } from '../../compiled-query.ts';
import type { Reader } from '../../database.ts';
import { containsText, largeNumber, withoutIndex } from '../../engine-sql.ts';
import { idsLabelled, isLabelled } from '../object-labels.ts';
import { statusOrder, statusRank } from './certificate-statuses.ts';
import {
  type CertificatePage,
  type ShownCertificateRow,
  shownOfVersion,
  shownVersion,
  withCurrentVersions,
} from './certificate-summaries.ts';

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
  /** Only certificates with all of these labels. */
  readonly labels?: readonly string[] | undefined;
  /** With `allowlistOf`: the key may access certificates with any of these labels, too. */
  readonly allowedLabels?: readonly string[] | undefined;
  /** Only certificates with any of these labels, also of those in an allowlist. */
  readonly reach?: readonly string[] | undefined;
  readonly sort?: (typeof certificateSorts)[number];
  /** A cursor that `cursorOf` created from the last row of the previous page. */
  readonly after?: SearchCursor | undefined;
};

/** The end of a page: the name, and the sort value if it is not the name. */
export type SearchCursor = { readonly name: string; readonly key?: number | undefined };

/** A certificate that matches a search, and its sort value; 0 if that is the name. */
export type CertificateMatch = { readonly name: string; readonly sort_key: number };

export type FoundCertificate = ShownCertificateRow & CertificateMatch;

/**
 * Part of the certificates that a search looks through: by id those in the allowlist, with the labels or of the issuer
 * that it names, which may be few, and otherwise all of them by name. Greater than `after`, up to `last`.
 */
export type SearchSpan = (
  | { readonly by: 'name'; readonly after: string; readonly last: string }
  | { readonly by: 'id'; readonly after: number; readonly last: number }
) & { readonly count: number };

/** Certificates without a version come last when sorted by expiry. */
const never = Number.MAX_SAFE_INTEGER;

const expiry = sql<number>`coalesce(certificate_versions.not_after, ${sql.lit(never)})`;

function sortKey({ sort, now }: CertificateSearch) {
  if (sort === 'expiry') return expiry;
  return sort === 'status' ? statusRank(now) : sql<number>`0`;
}

/** The next `count` certificates after a span, or the first ones; undefined if there are none. */
export async function nextSpan(
  reader: Reader,
  search: CertificateSearch,
  previous: SearchSpan | undefined,
  count: number,
): Promise<SearchSpan | undefined> {
  if (isByName(search)) {
    const start = search.sort === 'name' ? search.after?.name : undefined;
    const after = previous?.by === 'name' ? previous.last : (start ?? '');
    const names = reader.selectFrom('certificates').select('name').where('name', '>', after);
    const span = await reader
      .selectFrom(names.orderBy('name').limit(count).as('span'))
      .select(({ fn }) => [fn.max<string | null>('name').as('last'), fn.countAll<number>().as('count')])
      .executeTakeFirstOrThrow();
    return span.last === null ? undefined : { by: 'name', after, last: span.last, count: span.count };
  }
  const after = previous?.by === 'id' ? previous.last : 0;
  const ids = reader
    .selectFrom(idsOf(reader, search, after).as('ids'))
    .select('id')
    .orderBy('id');
  const span = await reader
    .selectFrom(ids.limit(count).as('span'))
    .select(({ fn }) => [fn.max<number | null>('id').as('last'), fn.countAll<number>().as('count')])
    .executeTakeFirstOrThrow();
  return span.last === null ? undefined : { by: 'id', after, last: span.last, count: span.count };
}

/** Whether no index but that of the names finds the certificates. */
function isByName({ allowlistOf, issuer, labels, reach }: CertificateSearch): boolean {
  return [allowlistOf, issuer, labels, reach].every((filter) => filter === undefined);
}

/** The ids above `after` in the allowlist, with the labels or of the issuer of a search. */
function idsOf(
  reader: Reader,
  { allowlistOf, allowedLabels = [], labels, reach, issuer }: CertificateSearch,
  after: number,
  last = never,
) {
  const labelled = (any: readonly string[]) =>
    idsLabelled(reader, 'certificate', any).where('object_id', '>', after).where('object_id', '<=', last);
  if (allowlistOf !== undefined) {
    const listed = reader
      .selectFrom('api_key_certificates')
      .select('certificate_id as id')
      .where('api_key_id', '=', allowlistOf)
      .where('certificate_id', '>', after)
      .where('certificate_id', '<=', last);
    return allowedLabels.length === 0 ? listed : listed.union(labelled(allowedLabels));
  }
  if (reach !== undefined) return labelled(reach);
  if (labels !== undefined) return labelled(labels.slice(0, 1));
  const own = reader.selectFrom('certificates as own').select('own.id');
  const ids = own.where('own.id', '>', after).where('own.id', '<=', last);
  if (issuer === null || issuer === undefined) return ids.where('own.issuer_id', 'is', null);
  return ids.where('own.issuer_id', '=', ({ selectFrom }) =>
    selectFrom('issuers').select('id').where('name', '=', issuer),
  );
}

/** The first matches in a span, in the order of the search; ties are sorted by name. */
export async function matchesIn(
  reader: Reader,
  search: CertificateSearch,
  span: SearchSpan,
): Promise<CertificateMatch[]> {
  const key = sortKey(search);
  const { now, after, limit, search: text, status, issuer, expiresBy, labels, reach } = search;
  let query = withCurrentVersions(reader).select(['certificates.name', key.as('sort_key')]);
  if (span.by === 'id') {
    query = query.where('certificates.id', 'in', idsOf(reader, search, span.after, span.last));
  } else {
    query = query.where('certificates.name', '>', span.after).where('certificates.name', '<=', span.last);
  }
  if (after !== undefined) {
    query = query.where(
      sql<boolean>`(${key}, certificates.name) > (${largeNumber(after.key ?? 0)}, ${after.name})`,
    );
  }
  if (text !== undefined) {
    const part = text.toLowerCase();
    query = query.where(
      sql<boolean>`(${containsText(sql`lower(certificates.name)`, part)}
        or ${containsText(sql`certificates.domains`, part)})`,
    );
  }
  if (status !== undefined) {
    query = query.where(sql<boolean>`${statusRank(now)} = ${statusOrder.indexOf(status)}`);
  }
  // The span was chosen by a better index than that of the issuer.
  const issuerId = withoutIndex<number | null>('certificates.issuer_id');
  if (issuer === null) query = query.where(issuerId, 'is', null);
  else if (issuer !== undefined) {
    query = query.where(issuerId, '=', ({ selectFrom }) =>
      selectFrom('issuers').select('id').where('name', '=', issuer),
    );
  }
  if (reach !== undefined) query = query.where(isLabelled('certificate', 'certificates.id', reach));
  for (const label of labels ?? []) {
    query = query.where(isLabelled('certificate', 'certificates.id', [label]));
  }
  if (expiresBy !== undefined) query = query.where('certificate_versions.not_after', '<=', expiresBy);
  return query.orderBy('sort_key').orderBy('certificates.name').limit(limit).execute();
}

const byName = compiledQuery((db, after: Expression<string>, limit: Expression<number>) =>
  shown(db).where('certificates.name', '>', after).orderBy('certificates.name').limit(limit),
);

/** All certificates by name: at most `limit` after the name `after`. */
export async function pageCertificates(
  reader: Reader,
  after: string,
  limit: number,
): Promise<FoundCertificate[]> {
  return (await byName(reader, after, limit)).map((row) => found(row, 0));
}

/** The certificates that matched, in the same order, without those that were deleted meanwhile. */
export async function certificatesMatched(
  reader: Reader,
  matches: readonly CertificateMatch[],
): Promise<FoundCertificate[]> {
  const names = matches.map(({ name }) => name);
  const rows = await shown(reader).where('certificates.name', 'in', names).execute();
  const byName = new Map(rows.map((row) => [row.name, row]));
  return matches.flatMap(({ name, sort_key }) => {
    const row = byName.get(name);
    return row === undefined ? [] : [found(row, sort_key)];
  });
}

/** Only displayed columns: a page has a thousand rows, and each column of each row costs time. */
function shown(reader: Builder) {
  return withCurrentVersions(reader)
    .select([
      'certificates.name',
      'certificates.domains',
      'certificates.uris',
      'certificates.emails',
      'certificates.labels',
      'certificates.key_type',
      'issuers.name as issuer_name',
      'certificates.acme_client_id',
      'acme_clients.name as owner_name',
    ])
    .select(['certificates.disabled_at', 'certificates.auto_renew', 'certificates.created_at'])
    .select(['certificates.current_version', 'certificates.next_renewal_at'])
    .select(['certificates.last_error', 'certificates.last_attempt_at', 'certificates.csr'])
    .select(shownOfVersion);
}

type ShownRow = Awaited<ReturnType<ReturnType<typeof shown>['executeTakeFirstOrThrow']>>;

/** A row with the current version as a nested object. */
function found(row: ShownRow, sort_key: number): FoundCertificate {
  return {
    name: row.name,
    domains: row.domains,
    uris: row.uris,
    emails: row.emails,
    labels: row.labels,
    key_type: row.key_type,
    issuer_name: row.issuer_name,
    acme_client_id: row.acme_client_id,
    owner_name: row.owner_name,
    disabled_at: row.disabled_at,
    auto_renew: row.auto_renew,
    created_at: row.created_at,
    current_version: row.current_version,
    next_renewal_at: row.next_renewal_at,
    last_error: row.last_error,
    last_attempt_at: row.last_attempt_at,
    csr: row.csr,
    sort_key,
    current: shownVersion(row),
  };
}
