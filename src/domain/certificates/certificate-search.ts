/** Certificates as people look through them: filtered, sorted, counted, and all of them page by page. */
import {
  type CertificateSearch,
  certificateSorts,
  countByStatus,
  type FoundCertificate,
  pageWatched,
  searchCertificates,
  statusOrder,
  type WatchedRow,
} from '../../db/tables/certificate-search.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
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
export type CertificateFilter = Pick<CertificateSearch, 'search' | 'status' | 'issuer' | 'expiresBy'>;

/** What monitoring watches of a certificate. */
export type WatchedCertificate = WatchedRow;

/** Certificates are read so many at a time, and requests are answered in between. */
const watchedAtOnce = 500;
const pageSize = 1000;

/** A page of the certificates that fit, in the order of the search. */
export function findCertificates(
  { db }: DatabaseContext,
  search: CertificateSearch,
): Promise<CertificateOnPage[]> {
  return searchCertificates(db.reader, search);
}

/** All certificates that fit, page by page in the order of the search; the last page may be empty. */
export async function* pagesOfCertificates(
  vault: TimedContext,
  search: CertificateFilter & Pick<CertificateSearch, 'sort'> = {},
): AsyncGenerator<CertificateOnPage[]> {
  const now = vault.world.now();
  for (let after: CertificateCursor | undefined; ; ) {
    const page = await findCertificates(vault, { ...search, now, after, limit: pageSize });
    yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    after = { name: last.name, key: last.sort_key };
  }
}

/** How many certificates there are of each status. */
export function countCertificates({ db, world }: TimedContext): Promise<Record<CertificateStatus, number>> {
  return countByStatus(db.reader, world.now());
}

/** All certificates by name, as monitoring watches them. */
export async function watchedCertificates({ db, world }: TimedContext): Promise<WatchedCertificate[]> {
  const all: WatchedCertificate[] = [];
  for (;;) {
    const page = await pageWatched(db.reader, all.at(-1)?.name ?? '', watchedAtOnce);
    all.push(...page);
    if (page.length < watchedAtOnce) return all;
    await world.turn();
  }
}
