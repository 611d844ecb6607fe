/** Which zone of an account a TXT record belongs into, and what the record is called inside of it. */

import { DnsProviderError, type TxtRecord } from '../dns-provider.ts';
import { plainName, upwards } from '../resolver/dns-name.ts';

/**
 * Names that the zone of a record may have, longest first: from the record's own name, which may be a zone of its own,
 * down to two labels, or one where the configured zone has one.
 */
export function zoneCandidates({ name, zone }: TxtRecord): string[] {
  const names = upwards(name);
  return zone.includes('.') && names.length > 1 ? names.slice(0, -1) : names;
}

/** The one with the longest name that the record is in or under, its name in lower case and without a dot at the end. */
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

/** `_acme-challenge.www` for that name under example.com; empty for the zone itself. */
export function relativeName(name: string, zone: string): string {
  return name === zone ? '' : name.slice(0, -(zone.length + 1));
}

/** Says that the account has no such zone; `check` is a sentence on what to look at. */
export function zoneMissing(title: string, { name, zone }: TxtRecord, check: string): DnsProviderError {
  return new DnsProviderError(`${title} has no zone for ${name} (configured as ${zone}). ${check}`);
}
