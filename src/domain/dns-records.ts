/**
 * Records for validations: which provider a name belongs to, and putting records up and taking them down through it.
 * Changes by the same provider go one after the other: many of them replace the values of a name as a whole.
 */
import { minute } from '../base/duration.ts';
import { OperatorError } from '../base/operator-error.ts';
import type { DnsProviderRow } from '../db/dns-providers.ts';
import { listDnsProviders } from '../db/dns-providers.ts';
import type { DnsProvider, DnsProviderType, TxtRecord } from '../dns/dns-provider.ts';
import { waitUntilVisible } from '../dns/propagation.ts';
import { dnsProviderTypes, readProviderConfig } from '../dns/provider-types.ts';
import { challengeName, followCnames, longestZone } from '../dns/zones.ts';
import { didYouMean } from './closest-names.ts';
import { dnsSecretOwner, openFor } from './sealed-secrets.ts';
import type { Vault } from './vault.ts';

/** How long a record may take until the authoritative servers show it. */
const propagationPatience = 10 * minute;

/** Where a name's record belongs. */
export type Place = {
  readonly provider: DnsProviderRow;
  /** Of the record, after CNAMEs were followed. */
  readonly name: string;
  readonly zone: string;
};

/** The kind of provider. Throws OperatorError for one that this vault does not know. */
export function providerType(type: string): DnsProviderType {
  const known = dnsProviderTypes.get(type);
  if (known !== undefined) return known;
  throw new OperatorError(`there is no kind of DNS provider called "${type}"`, {
    hint: didYouMean(
      type,
      [...dnsProviderTypes.keys()],
      `Use one of: ${[...dnsProviderTypes.keys()].join(', ')}.`,
    ),
  });
}

/**
 * Where the record that validates `domain` (without `*.`) belongs: its CNAMEs are followed, and the longest zone of all
 * providers wins. Undefined where no provider has a zone for it.
 */
export async function placeOf(vault: Vault, domain: string, signal: AbortSignal): Promise<Place | undefined> {
  const rows = await listDnsProviders(vault.db.reader);
  if (rows.length === 0) return undefined;
  const name = await followCnames(vault.dns.context.resolver, challengeName(domain), signal);
  const providers = rows.map((row) => ({ row, zones: JSON.parse(row.zones) as string[] }));
  const found = longestZone(name, providers);
  return found && { provider: found.provider.row, name, zone: found.zone };
}

/** Puts the record up; other values at its name stay. Throws DnsProviderError. */
export async function putUp(
  vault: Vault,
  row: DnsProviderRow,
  record: TxtRecord,
  signal: AbortSignal,
): Promise<void> {
  const provider = await openProvider(vault, row);
  await vault.turns.take(`dns:${row.id}`, () => provider.present(record, signal));
}

/** Takes the record down; one that is gone already is fine. Throws DnsProviderError. */
export async function takeDown(
  vault: Vault,
  row: DnsProviderRow,
  record: TxtRecord,
  signal: AbortSignal,
): Promise<void> {
  const provider = await openProvider(vault, row);
  await vault.turns.take(`dns:${row.id}`, () => provider.remove(record, signal));
}

/**
 * Waits until the record can be seen where the CA will look for it. A person who makes records by hand has until
 * `signal` is aborted; everybody else ten minutes. Throws DnsProviderError that says who shows what.
 */
export async function awaitVisible(
  vault: Vault,
  row: DnsProviderRow,
  record: TxtRecord,
  signal: AbortSignal,
): Promise<void> {
  const { byHand } = await openProvider(vault, row);
  const timeoutMs = byHand === true ? 24 * 60 * minute : propagationPatience;
  await waitUntilVisible(vault.dns.context, record, { timeoutMs }, signal);
}

/** Whether somebody has to make the provider's records by hand. */
export async function isByHand(vault: Vault, row: DnsProviderRow): Promise<boolean> {
  return (await openProvider(vault, row)).byHand === true;
}

function openProvider(vault: Vault, row: DnsProviderRow): Promise<DnsProvider> {
  return vault.dns.get(row, async () => {
    const type = providerType(row.type);
    const secret = openFor(vault, dnsSecretOwner(row.id), row.sealed_secret).expose().toString('utf8');
    return type.create(await readProviderConfig(type, secret), vault.dns.context);
  });
}
