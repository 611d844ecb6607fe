/**
 * DNS providers with the delays of real ones, in memory and on the clock of the test: a hook that sleeps, an API that
 * never answers, one that is down for a while. They write into a SimulatedDns.
 */
import { Secret } from '../../../src/base/secret.ts';
import type { World } from '../../../src/base/world.ts';
import { type DnsProvider, DnsProviderError, type TxtRecord } from '../../../src/dns/dns-provider.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { addDnsProvider } from '../../../src/domain/dns-providers/dns-providers.ts';
import { OpenedDnsProviders } from '../../../src/domain/dns-providers/opened-dns-providers.ts';
import { createDnsProviderInput, parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import type { SimulatedDns } from './simulated-dns.ts';
import { route53Secret, type SimulatedRoute53 } from './simulated-route53.ts';

/** What a provider did and does. */
export type HookFigures = { present: number; remove: number; atOnce: number; maxAtOnce: number };

/** A hook as certbot's are: it makes the record and then sleeps, so that it is visible when the hook has ended. */
export function sleepingHook(
  world: World,
  dns: SimulatedDns,
  options: {
    readonly presentMs?: number;
    readonly removeMs?: number;
    /** As the secret file's `timeout`. */
    readonly timeoutMs?: number;
    /** As the secret file's `concurrency`. */
    readonly concurrency?: number;
  } = {},
): DnsProvider & { readonly figures: HookFigures } {
  const { presentMs = 90_000, removeMs = 5000, timeoutMs = 120_000, concurrency } = options;
  const figures = { present: 0, remove: 0, atOnce: 0, maxAtOnce: 0 };
  const run = async (what: 'present' | 'remove', ms: number, signal: AbortSignal, act: () => void) => {
    figures[what] += 1;
    figures.atOnce += 1;
    figures.maxAtOnce = Math.max(figures.maxAtOnce, figures.atOnce);
    try {
      if (what === 'present') act();
      await world.sleep(Math.min(ms, timeoutMs), signal);
      if (signal.aborted || ms > timeoutMs) throw new DnsProviderError('the hook was ended');
      if (what === 'remove') act();
    } finally {
      figures.atOnce -= 1;
    }
  };
  return {
    figures,
    limitsItself: true,
    ...(concurrency !== undefined && { concurrency }),
    present: ({ name, value }, signal) => run('present', presentMs, signal, () => dns.add(name, value)),
    remove: ({ name, value }, signal) => run('remove', removeMs, signal, () => dns.remove(name, value)),
  };
}

/** An API that writes one record per request, as most do. `isDown` makes every request fail. */
export function plainApi(
  world: World,
  dns: SimulatedDns,
  { requestMs = 300 }: { readonly requestMs?: number } = {},
): DnsProvider & { isDown: boolean } {
  const change = async (act: () => void, signal: AbortSignal) => {
    await world.sleep(requestMs, signal);
    if (signal.aborted) throw new DnsProviderError('the request was canceled');
    if (api.isDown) throw new DnsProviderError('the API of the provider is down (503)');
    act();
  };
  const api = {
    isDown: false,
    present: ({ name, value }: TxtRecord, signal: AbortSignal) => change(() => dns.add(name, value), signal),
    remove: ({ name, value }: TxtRecord, signal: AbortSignal) =>
      change(() => dns.remove(name, value), signal),
  };
  return api;
}

/** An API that takes every request and never answers one. */
export function silentApi(world: World): DnsProvider {
  const never = async (_: TxtRecord, signal: AbortSignal) => {
    while (!signal.aborted) await world.sleep(3_600_000, signal);
    throw new DnsProviderError('the request was canceled');
  };
  return { present: never, remove: never };
}

/** The same vault in a world with this DNS, and with Route 53 in it. */
export function inSimulatedDns(
  vault: Vault,
  dns: SimulatedDns,
  route53?: SimulatedRoute53,
  configured?: string,
): Vault {
  const resolver = dns.resolver(configured === undefined ? {} : { configured });
  const outbound = route53?.outbound ?? vault.outbound;
  return { ...vault, dns: new OpenedDnsProviders({ ...vault.dns.context, resolver, outbound }) };
}

/** Adds a provider of one of the kinds above for these zones. */
export async function addSimulatedProvider(
  vault: Vault,
  name: string,
  zones: readonly string[],
  provider: DnsProvider,
): Promise<void> {
  await add(vault, name, 'exec', zones, 'command: [/bin/false]\nstyle: lego\n');
  const row = await vault.db.reader
    .selectFrom('dns_providers')
    .selectAll()
    .where('name', '=', name)
    .executeTakeFirstOrThrow();
  await vault.dns.get(row, async () => provider);
}

/** Adds a provider of the type route53 for these zones: the real code, for a vault of `inSimulatedDns`. */
export async function addRoute53Provider(
  vault: Vault,
  name: string,
  zones: readonly string[],
): Promise<void> {
  await add(vault, name, 'route53', zones, route53Secret);
}

async function add(vault: Vault, name: string, type: string, zones: readonly string[], text: string) {
  const input = parseInput(createDnsProviderInput, { name, type, zones: [...zones] });
  await addDnsProvider(vault, localCli, input, new Secret(Buffer.from(text)));
}
