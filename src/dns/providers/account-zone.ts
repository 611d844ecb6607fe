/** Finds the zone of an account for a TXT record, and the relative name of the record. */

import { DnsProviderError, type TxtRecord } from '../dns-provider.ts';
import { plainName, upwards } from '../resolver/dns-name.ts';

/**
 * Possible names of a record's zone, longest first: from the name of the record, which may be a zone of its own, down
 * to two labels, or to one if the configured zone has one.
 */
export function zoneCandidates({ name, zone }: TxtRecord): string[] {
  const names = upwards(name);
  return zone.includes('.') && names.length > 1 ? names.slice(0, -1) : names;
}

/** The zone with the longest name that contains the record; its name is in lower case without a trailing dot. */
export function accountZone<Zone extends { readonly name: string }>(
  zones: readonly Zone[],
  record: TxtRecord,
): Zone | undefined {
  for (const candidate of zoneCandidates(record)) {
    const zone = zones.find(({ name }) => plainName(name) === candidate);
    if (zone !== undefined) return { ...zone, name: candidate };
  }
  return undefined;
}

/** `_acme-challenge.www` for that name in example.com; empty for the zone itself. */
export function relativeName(name: string, zone: string): string {
  return name === zone ? '' : name.slice(0, -(zone.length + 1));
}

/** The account has no such zone; `check` is a sentence about what to check. */
export function zoneMissing(title: string, { name, zone }: TxtRecord, check: string): DnsProviderError {
  return new DnsProviderError(`${title} has no zone for ${name} (configured as ${zone}). ${check}`);
}
