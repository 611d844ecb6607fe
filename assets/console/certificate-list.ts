/** Which certificates a list shows, and in which order: in the browser, so that it follows every keystroke. */
import { healthOf, troubleOf } from './certificate-health.ts';
import type { Certificate } from './shapes.ts';

/** As the address has it; empty is anything. An issuer of `-` is none: imported certificates. */
export type ListFilter = {
  readonly search: string;
  readonly status: string;
  readonly issuer: string;
  readonly sort: string;
};

export const sorts = {
  trouble: 'Trouble first',
  name: 'Name',
  expiry: 'Days left',
  renewed: 'Last renewal',
} as const;

const collator = new Intl.Collator(undefined, { numeric: true });

export function listed(all: readonly Certificate[], filter: ListFilter): Certificate[] {
  return found(inOrder(all, filter.sort), filter);
}

/** What fits search, status and issuer, in the order in which it is given. */
export function found(all: readonly Certificate[], filter: Omit<ListFilter, 'sort'>): Certificate[] {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter(
    (certificate) =>
      fits(certificate, filter) &&
      words.every((word) =>
        [certificate.name, ...certificate.domains].some((text) => text.toLowerCase().includes(word)),
      ),
  );
}

/** One of `sorts`; names decide between equals. */
export function inOrder(all: readonly Certificate[], sort: string): Certificate[] {
  // Dates are read once each, not at every comparison.
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

/** The issuers that there are, and `-` where something has none. */
export function issuersOf(all: readonly Certificate[]): string[] {
  return [...new Set(all.map(({ issuer }) => issuer ?? '-'))].sort(collator.compare);
}

/** `failing` is no status of the API: the last renewal failed, whatever the certificate still is. */
function fits({ status, issuer, renewal }: Certificate, filter: Omit<ListFilter, 'sort'>): boolean {
  if (filter.issuer !== '' && (issuer ?? '-') !== filter.issuer) return false;
  if (filter.status === 'failing') return renewal.last_error !== null;
  return filter.status === '' || status === filter.status;
}

function sortKeys(certificate: Certificate, sort: string): readonly number[] {
  if (sort === 'name') return [];
  const { current_version: version } = certificate;
  if (sort === 'renewed') return [-moment(version?.created_at, 0)];
  const expiry = moment(version?.not_after, 8e15);
  return sort === 'expiry' ? [expiry] : [troubleOf(healthOf(certificate)), expiry];
}

function moment(text: string | undefined, none: number): number {
  return text === undefined ? none : Date.parse(text);
}
