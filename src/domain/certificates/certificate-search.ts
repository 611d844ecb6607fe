/** Certificates as people look through them: filtered, sorted, counted, and all of them page by page. */
import { requireIntegrity } from '../../base/integrity.ts';
import { hasAnyLabel } from '../../base/object-label.ts';
import { findLabelsNamed } from '../../db/tables/certificates/certificate-labels.ts';
import {
  type CertificateMatch,
  type CertificateSearch,
  certificateSorts,
  certificatesMatched,
  type FoundCertificate,
  matchesIn,
  nextSpan,
  pageCertificates,
  type SearchSpan,
} from '../../db/tables/certificates/certificate-search.ts';
import {
  countByStatus,
  pageWatched,
  statusOrder,
  type WatchedRow,
} from '../../db/tables/certificates/certificate-statuses.ts';
import type { LoggedContext, TimedContext } from '../contexts.ts';
import { authenticLabels } from '../labels/known-labels.ts';
import { inMatchedPortions, inPortions, rangesOf } from '../portions.ts';
import type { CertificateStatus } from './certificate-status.ts';

/** What a page can be sorted by. */
export const certificateOrders = certificateSorts;

/** The statuses in the order of the sort by status: first those that need a person. */
export const statusesByUrgency = statusOrder;

/** A certificate on a page of a search, with the value that the page is sorted by. */
export type CertificateOnPage = FoundCertificate;

/** Where a page ends. */
export type CertificateCursor = NonNullable<CertificateSearch['after']>;

/** Which certificates; what is undefined does not matter. */
export type CertificateFilter = Pick<
  CertificateSearch,
  'search' | 'status' | 'issuer' | 'expiresBy' | 'labels'
>;

/** What monitoring watches of a certificate. */
export type WatchedCertificate = WatchedRow;

/** Certificates are read so many at a time, and requests are answered in between. */
const watchedAtOnce = 500;
const pageSize = 1000;

/** Certificates that a query looks through: a few milliseconds of work. */
const scannedAtOnce = 2000;

/** A page of the certificates that fit, in the order of the search, in portions. */
export async function* findCertificates(
  vault: LoggedContext,
  search: CertificateSearch,
): AsyncGenerator<readonly CertificateOnPage[]> {
  const { reader } = vault.db;
  const { sort = 'name', limit, after, allowlistOf, search: text, status, issuer, expiresBy } = search;
  const filters = [allowlistOf, search.reach, search.labels, text, status, issuer, expiresBy];
  if (sort === 'name' && filters.every((filter) => filter === undefined)) {
    yield* inPortions<CertificateOnPage>(vault, limit, (count, last) =>
      pageCertificates(reader, last?.name ?? after?.name ?? '', count),
    );
    return;
  }
  yield* inMatchedPortions<CertificateMatch, CertificateOnPage>(
    vault,
    limit,
    (count, last) => {
      const start = last === undefined ? after : { name: last.name, key: last.sort_key };
      return firstMatches(vault, { ...search, sort, limit: count, after: start });
    },
    async (matches) => certificatesMatched(reader, await accessible(vault, search, matches)),
  );
}

/**
 * The matches that the caller may access. The query found them by labels; whether the vault wrote these, only their
 * tags say.
 */
async function accessible(
  { db, log }: LoggedContext,
  { allowlistOf, allowedLabels = [], reach }: CertificateSearch,
  matches: readonly CertificateMatch[],
): Promise<readonly CertificateMatch[]> {
  if (matches.length === 0 || (allowedLabels.length === 0 && reach === undefined)) return matches;
  const integrity = requireIntegrity(db);
  const names = matches.map(({ name }) => name);
  const rows = await findLabelsNamed(db.reader, names, allowlistOf);
  const permitted = rows.filter((row) => {
    const labels = authenticLabels(integrity, log, row);
    const isAllowed = allowlistOf === undefined || row.isListed || hasAnyLabel(labels, allowedLabels);
    return isAllowed && (reach === undefined || hasAnyLabel(labels, reach));
  });
  const known = new Set(permitted.map(({ name }) => name));
  return matches.filter(({ name }) => known.has(name));
}

/** The first matches of a search, in its order. */
async function firstMatches(
  { db, world }: TimedContext,
  search: CertificateSearch,
): Promise<readonly CertificateMatch[]> {
  let first: CertificateMatch[] = [];
  let span: SearchSpan | undefined;
  for (;;) {
    span = await nextSpan(db.reader, search, span, scannedAtOnce);
    if (span === undefined) return first;
    first = [...first, ...(await matchesIn(db.reader, search, span))]
      .toSorted(inOrder)
      .slice(0, search.limit);
    const isEnough = search.sort === 'name' && span.by === 'name' && first.length === search.limit;
    if (isEnough || span.count < scannedAtOnce) return first;
    await world.turn();
  }
}

function inOrder(one: CertificateMatch, other: CertificateMatch): number {
  return one.sort_key - other.sort_key || (one.name < other.name ? -1 : 1);
}

/** All certificates that fit, page by page in the order of the search; the last page may be empty. */
export async function* pagesOfCertificates(
  vault: LoggedContext,
  search: CertificateFilter & Pick<CertificateSearch, 'sort'> = {},
): AsyncGenerator<CertificateOnPage[]> {
  const now = vault.world.now();
  for (let after: CertificateCursor | undefined; ; ) {
    const page = findCertificates(vault, { ...search, now, after, limit: pageSize });
    const rows = (await Array.fromAsync(page)).flat();
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageSize) return;
    after = { name: last.name, key: last.sort_key };
  }
}

/** How many certificates there are of each status. */
export async function countCertificates(vault: TimedContext): Promise<Record<CertificateStatus, number>> {
  const now = vault.world.now();
  const counts = { expired: 0, not_yet_valid: 0, expiring: 0, pending: 0, valid: 0, disabled: 0 };
  for await (const range of rangesOf(vault, 'certificates', scannedAtOnce)) {
    for (const [status, count] of await countByStatus(vault.db.reader, now, range)) counts[status] += count;
  }
  return counts;
}

/** All certificates by name, as monitoring watches them; with their labels only if it shows them. */
export async function watchedCertificates(
  { db, world }: TimedContext,
  columns: Parameters<typeof pageWatched>[3],
): Promise<WatchedCertificate[]> {
  const all: WatchedCertificate[] = [];
  for (;;) {
    const page = await pageWatched(db.reader, all.at(-1)?.name ?? '', watchedAtOnce, columns);
    all.push(...page);
    if (page.length < watchedAtOnce) return all;
    await world.turn();
  }
}
