/** Changes a DNS provider in place, so that the records it presented are still removed. */
import { toJson } from '../../base/json.ts';
import type { Secret } from '../../base/secret.ts';
import type { Writer } from '../../db/database.ts';
import {
  type DnsProviderRow,
  setDnsProviderSecret,
  updateDnsProvider,
} from '../../db/tables/issuance/dns-providers.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { KeyringContext, SealingContext } from '../contexts.ts';
import type { CreateDnsProviderInput } from '../inputs.ts';
import { dnsSecretOwner, openFor, sealFor } from '../sealed-secrets.ts';
import { requireDnsProvider } from './dns-providers.ts';

/** The text of the provider's secret file. */
export function dnsProviderSecret(vault: KeyringContext, { id, sealed_secret }: DnsProviderRow): Secret {
  return openFor(vault, dnsSecretOwner(id), sealed_secret);
}

/**
 * Replaces type, zones and secret of a provider in the caller's transaction; call `checkDnsProvider` first. All
 * processes reopen the provider afterwards.
 */
export async function storeDnsProviderChange(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  { name, type, zones }: CreateDnsProviderInput,
  { secret, isOther }: { readonly secret: Secret; readonly isOther: boolean },
): Promise<void> {
  const { id } = await requireDnsProvider(writer, name);
  await updateDnsProvider(writer, id, { type, zones: toJson(zones) });
  await setDnsProviderSecret(writer, id, await sealFor(vault, writer, dnsSecretOwner(id), secret));
  const detail = { type, zones, ...(isOther && { secret: 'replaced' }) };
  const event = { actor, action: 'dns_provider.update', resource: `dns-provider:${name}`, detail } as const;
  record(writer, event, vault.world.now());
}
