/** The options that choose certificates, for "certificate list" and "certificate renew". They combine with "and". */
import { parseDuration } from '../../../base/duration.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import {
  type CertificateFilter,
  statusesByUrgency,
} from '../../../domain/certificates/certificate-search.ts';
import type { TimedContext } from '../../../domain/contexts.ts';
import { viewIssuers } from '../../../domain/issuers/issuer-views.ts';
import type { Arguments } from '../../terminal/arguments.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { labelFilterOption, labelsToFind } from '../label-options.ts';

export const filterOptions = {
  expiring: {
    type: 'string',
    valueHint: 'DURATION',
    description: 'only certificates that expire within this time, such as 30d, or have expired',
  },
  status: {
    type: 'string',
    valueHint: 'STATUS',
    values: statusesByUrgency,
    description: `only certificates with this status: ${statusesByUrgency.join(', ')}`,
  },
  issuer: {
    type: 'string',
    valueHint: 'ISSUER',
    names: 'issuers',
    description: 'only certificates of this issuer; "imported" for imported ones',
  },
  search: {
    type: 'string',
    valueHint: 'TEXT',
    description: 'only certificates with this text in their name or a domain',
  },
  ...labelFilterOption,
} as const;

/** What the table shows as the issuer of imported certificates. */
const imported = 'imported';

type Given = Arguments<typeof filterOptions>;

/** The filter options that are given, as they are written. */
export function givenFilters(args: Given): string[] {
  return Object.keys(filterOptions)
    .filter((name) => args[name as keyof Given] !== undefined && args[name as keyof Given]?.length !== 0)
    .map((name) => `--${name}`);
}

/** A filter as given, with values that need no vault to be valid, except for the issuer. */
export type ReadFilter = CertificateFilter & { readonly expiringWithin: number | undefined };

/** Reads the options before the vault is opened. Throws Misuse. */
export function readFilter({ expiring, status, issuer, search, label }: Given): ReadFilter {
  const expiringWithin = expiring === undefined ? undefined : parseDuration(expiring);
  if (expiring !== undefined && expiringWithin === undefined) {
    throw new Misuse(
      `--expiring: "${expiring}" is not a duration`,
      'Use a number with m, h, d or y, such as 30d.',
    );
  }
  const knownStatus = statusesByUrgency.find((known) => known === status);
  if (status !== undefined && knownStatus === undefined) {
    throw new Misuse(`--status: unknown status "${status}"`, `Use one of ${statusesByUrgency.join(', ')}.`);
  }
  return {
    expiringWithin,
    status: knownStatus,
    issuer,
    search: search === '' ? undefined : search,
    labels: labelsToFind(label),
  };
}

/** The filter for this vault. Throws OperatorError with the known issuers if there is none of that name. */
export async function filterFor(
  vault: TimedContext,
  { expiringWithin, issuer, ...filter }: ReadFilter,
): Promise<CertificateFilter> {
  const expiresBy = expiringWithin === undefined ? undefined : vault.world.now() + expiringWithin;
  if (issuer === undefined) return { ...filter, expiresBy };
  const known = (await viewIssuers(vault)).map(({ name }) => name);
  return { ...filter, expiresBy, issuer: checkedIssuer(issuer, known) };
}

/** The name of a known issuer, null for imported certificates. Throws OperatorError with the known issuers. */
export function checkedIssuer(
  issuer: string | null | undefined,
  known: readonly string[],
): string | null | undefined {
  if (issuer === undefined || (typeof issuer === 'string' && known.includes(issuer))) return issuer;
  if (issuer === imported) return null;
  throw new OperatorError(`--issuer: unknown issuer "${issuer}"`, {
    hint: `Use one of ${[...known, imported].join(', ')}.`,
  });
}
