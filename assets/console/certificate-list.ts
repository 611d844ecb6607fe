/** Which certificates a list shows, and in which order: in the browser, so that it follows every keystroke. */
import { byTrouble, healthOf } from './certificate-health.ts';
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
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter(
    (certificate) =>
      fits(certificate, filter) &&
      words.every((word) =>
        [certificate.name, ...certificate.domains].some((text) => text.toLowerCase().includes(word)),
      ),
  );
  return found.sort((a, b) => compare(a, b, filter.sort) || collator.compare(a.name, b.name));
}

/** The issuers that there are, and `-` where something has none. */
export function issuersOf(all: readonly Certificate[]): string[] {
  return [...new Set(all.map(({ issuer }) => issuer ?? '-'))].sort(collator.compare);
}

/** `failing` is no status of the API: the last renewal failed, whatever the certificate still is. */
function fits({ status, issuer, renewal }: Certificate, filter: ListFilter): boolean {
  if (filter.issuer !== '' && (issuer ?? '-') !== filter.issuer) return false;
  if (filter.status === 'failing') return renewal.last_error !== null;
  return filter.status === '' || status === filter.status;
}

function compare(a: Certificate, b: Certificate, sort: string): number {
  if (sort === 'name') return 0;
  if (sort === 'renewed')
    return moment(b.current_version?.created_at, 0) - moment(a.current_version?.created_at, 0);
  const byExpiry = moment(a.current_version?.not_after, 8e15) - moment(b.current_version?.not_after, 8e15);
  return sort === 'expiry' ? byExpiry : byTrouble(healthOf(a), healthOf(b)) || byExpiry;
}

function moment(text: string | undefined, none: number): number {
  return text === undefined ? none : Date.parse(text);
}
