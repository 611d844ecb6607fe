/** Filters and sorts the list of certificates in the browser, so that it follows every keystroke. */

import type { Certificate } from '../data/shapes.ts';
import { groupOf, healthOf, healthRank } from './certificate-health.ts';
import { weekTest } from './expiry-weeks.ts';

/** The filters in the page's URL; empty matches all. Issuer `-` matches imported certificates, which have none. */
export type ListFilter = {
  readonly search: string;
  readonly status: string;
  readonly issuer: string;
  readonly label?: string;
  /** A group of certificate-health.ts. */
  readonly group?: string;
  /** When they expire: the id of a week of expiry-weeks.ts at `now`. */
  readonly week?: string;
  readonly now?: number;
  readonly sort: string;
};

export const sorts = {
  trouble: 'Needs attention',
  name: 'Name',
  expiry: 'Days left',
  renewed: 'Last issued',
} as const;

const collator = new Intl.Collator(undefined, { numeric: true });

export function filteredAndSorted(all: readonly Certificate[], filter: ListFilter): Certificate[] {
  return filtered(sorted(all, filter.sort), filter);
}

/** The certificates that match all filters, in the given order. */
export function filtered(all: readonly Certificate[], filter: Omit<ListFilter, 'sort'>): Certificate[] {
  const terms = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  const isInWeek = filter.week ? weekTest(filter.week, filter.now ?? Date.now()) : () => true;
  return all.filter(
    (certificate) =>
      matches(certificate, filter) &&
      isInWeek(moment(certificate.current_version?.not_after, Number.NaN)) &&
      terms.every((term) => textsOf(certificate).some((text) => text.toLowerCase().includes(term))),
  );
}

function textsOf({ name, owner, domains, labels }: Certificate): readonly string[] {
  return [name, owner?.name ?? '', ...domains, ...labels];
}

/** Sorts by one of `sorts`, then by name. */
export function sorted(all: readonly Certificate[], sort: string): Certificate[] {
  // Dates are parsed once each, not at every comparison.
  const ranked = all.map((certificate) => ({ certificate, keys: sortKeys(certificate, sort) }));
  ranked.sort((one, other) => {
    for (const [index, key] of one.keys.entries()) {
      const difference = key - (other.keys[index] ?? 0);
      if (difference !== 0) return difference;
    }
    return collator.compare(one.certificate.name, other.certificate.name);
  });
  return ranked.map(({ certificate }) => certificate);
}

/** The names of all issuers, and `-` if a certificate has none. */
export function issuersOf(all: readonly Certificate[]): string[] {
  return [...new Set(all.map(({ issuer }) => issuer ?? '-'))].sort(collator.compare);
}

/** All labels, sorted. */
export function labelsOf(all: readonly Certificate[]): string[] {
  return [...new Set(all.flatMap(({ labels }) => labels))].sort(collator.compare);
}

/** `failing` is not a status of the API: it matches certificates whose last renewal failed. */
function matches(certificate: Certificate, filter: Omit<ListFilter, 'sort'>): boolean {
  const { status, issuer, labels, renewal } = certificate;
  if (filter.group && groupOf(certificate) !== filter.group) return false;
  if (filter.issuer !== '' && (issuer ?? '-') !== filter.issuer) return false;
  if (filter.label && !labels.includes(filter.label)) return false;
  if (filter.status === 'failing') return renewal.last_error !== null;
  return filter.status === '' || status === filter.status;
}

function sortKeys(certificate: Certificate, sort: string): readonly number[] {
  if (sort === 'name') return [];
  const { current_version: version } = certificate;
  if (sort === 'renewed') return [-moment(version?.created_at, 0)];
  const expiry = moment(version?.not_after, 8e15);
  return sort === 'expiry' ? [expiry] : [healthRank(healthOf(certificate)), expiry];
}

function moment(text: string | undefined, none: number): number {
  return text === undefined ? none : Date.parse(text);
}
