/** Adding, testing and removing DNS providers. */

import { parseJson, toJson } from '../../base/json.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import type { Reader, Writer } from '../../db/database.ts';
import {
  type DnsProviderRow,
  deleteDnsProviderRow,
  findDnsProvider,
  insertDnsProvider,
  listDnsProviders,
  setDnsProviderSecret,
} from '../../db/tables/issuance/dns-providers.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { readProviderConfig } from '../../dns/providers/provider-types.ts';
import { challengeName, followCnames, longestZone } from '../../dns/resolver/zones.ts';
import { type Actor, record } from '../audit/audit.ts';
import { didYouMean } from '../closest-names.ts';
import type {
  DatabaseContext,
  SealingContext,
  SecretsContext,
  TimedContext,
  WorldContext,
} from '../contexts.ts';
import type { CreateDnsProviderInput } from '../inputs.ts';
import type { DnsChangeContext, DnsContext } from '../issuance-contexts.ts';
import { alikeName } from '../new-names.ts';
import { dnsSecretOwner, sealFor } from '../sealed-secrets.ts';
import {
  awaitVisible,
  inTurns,
  isByHand,
  presentRecords,
  providerType,
  removeRecords,
  zoneServers,
} from './dns-records.ts';

/** The provider of this name. Throws OperatorError that suggests similar names. */
export async function requireDnsProvider(reader: Reader, name: string): Promise<DnsProviderRow> {
  const row = await findDnsProvider(reader, name);
  if (row !== undefined) return row;
  throw unknownDnsProvider(
    name,
    (await listDnsProviders(reader)).map((provider) => provider.name),
  );
}

/** For a name that is not among the `known` ones; suggests similar ones. */
export function unknownDnsProvider(name: string, known: readonly string[]): OperatorError {
  return new OperatorError(`unknown DNS provider "${name}"`, {
    hint: didYouMean(name, known, 'Try: vault dns-provider list'),
  });
}

/** The hint of an error from `addDnsProvider` on the command line: where the settings come from. */
export function secretFileHint(error: OperatorError): string | undefined {
  if (!(error instanceof DnsProviderError)) return error.hint;
  return 'Write settings and credentials to a YAML or JSON file and name it with --secret-file.';
}

/**
 * Adds a provider; `secret` is the text of its secret file, which is checked and sealed. Throws OperatorError or
 * DnsProviderError before anything is stored.
 */
export async function addDnsProvider(
  vault: SecretsContext & DnsContext,
  actor: Actor,
  input: CreateDnsProviderInput,
  secret: Secret,
): Promise<void> {
  await checkDnsProvider(vault, input.type, secret);
  await vault.db.write((writer) => storeDnsProvider(vault, writer, actor, input, secret));
}

/** Checks the secret file of a provider of this type. Throws like `addDnsProvider`. */
export async function checkDnsProvider(vault: DnsContext, type: string, secret: Secret): Promise<void> {
  const kind = providerType(type);
  const config = await readProviderConfig(kind, secret.expose().toString('utf8'));
  kind.create(config, vault.dns.context);
}

/** The part of `addDnsProvider` that writes, in the caller's transaction. */
export async function storeDnsProvider(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  { name, type, zones }: CreateDnsProviderInput,
  secret: Secret,
): Promise<void> {
  const taken = alikeName(await listDnsProviders(writer), name);
  if (taken !== undefined) {
    throw new OperatorError(`a DNS provider named ${taken} already exists`, {
      hint: `Choose another name, or remove the existing provider.\n  Try: vault dns-provider remove --name ${taken}`,
    });
  }
  const now = vault.world.now();
  const row = { name, type, zones: toJson(zones), sealed_secret: Buffer.alloc(0), created_at: now };
  const id = await insertDnsProvider(writer, row);
  await setDnsProviderSecret(writer, id, await sealFor(vault, writer, dnsSecretOwner(id), secret));
  const event = {
    actor,
    action: 'dns_provider.create',
    resource: `dns-provider:${name}`,
    detail: { type, zones },
  } as const;
  record(writer, event, now);
}

/** Removes a provider with its credentials. Its remaining challenge records must be removed by hand. */
export async function removeDnsProvider(vault: TimedContext, actor: Actor, name: string): Promise<void> {
  await vault.db.write((writer) => eraseDnsProvider(vault, writer, actor, name));
}

/** `removeDnsProvider` in the caller's transaction. */
export async function eraseDnsProvider(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  name: string,
): Promise<void> {
  const { id } = await requireDnsProvider(writer, name);
  await deleteDnsProviderRow(writer, id);
  const event = { actor, action: 'dns_provider.delete', resource: `dns-provider:${name}` } as const;
  record(writer, event, world.now());
}

/**
 * Presents a record for the domain like a validation, waits until it is visible, and removes it. Reports progress to
 * `onStep`. Throws OperatorError or DnsProviderError.
 */
export async function tryDnsProvider(
  vault: DatabaseContext & DnsChangeContext,
  { name, domain }: { readonly name: string; readonly domain: string },
  onStep: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const provider = await requireDnsProvider(vault.db.reader, name);
  const zones = parseJson(provider.zones);
  const wanted = challengeName(domain);
  const record = await followCnames(zoneServers(vault), wanted, signal);
  const found = longestZone(record, [{ zones }]);
  if (found === undefined) {
    const alias = record === wanted ? wanted : `${wanted} (a CNAME of ${record})`;
    throw new OperatorError(`${alias} is in none of the zones of ${name}: ${zones.join(', ')}`, {
      hint: 'Add the zone to the provider, or point a CNAME to a name in one of its zones.',
    });
  }
  const value = vault.world.randomBytes(32).toString('base64url');
  const txt = { name: record, value, zone: found.zone, domain: domain.replace(/^\*\./, '') };
  onStep(
    (await isByHand(vault, provider))
      ? `Create the record ${record} TXT "${value}"`
      : `Creating ${record} TXT "${value}"`,
  );
  const tried = await outcomeOf(async () => {
    await presentRecords(vault, provider, [txt], signal);
    onStep('Waiting until the record is visible');
    await awaitVisible(vault, provider, [txt], signal);
    onStep('Record is visible');
  });
  const removed = await outcomeOf(async () => {
    // Also after Ctrl-C: remove the record.
    await inTurns(vault, provider, [txt], new AbortController().signal, (records, deadline) =>
      removeRecords(vault, provider, records, deadline),
    );
    onStep('Record removed');
  });
  // Report the first error.
  for (const outcome of [tried, removed]) if (outcome?.status === 'rejected') throw outcome.reason;
}

async function outcomeOf(work: () => Promise<void>): Promise<PromiseSettledResult<void> | undefined> {
  const [outcome] = await Promise.allSettled([work()]);
  return outcome;
}
