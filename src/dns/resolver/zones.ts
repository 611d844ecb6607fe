/** Where the record of a validation belongs: its name, with CNAMEs resolved, and the provider of its zone. */

import { DnsProviderError } from '../dns-provider.ts';
import { isWithin, plainName } from './dns-name.ts';
import type { ZoneServers } from './zone-servers.ts';

const maxHops = 10;

/**
 * The provider with the longest zone that contains `name`, and that zone in lower case without a trailing dot. If two
 * have the same zone, the first one wins.
 */
export function longestZone<T extends { readonly zones: readonly string[] }>(
  name: string,
  providers: readonly T[],
): { readonly provider: T; readonly zone: string } | undefined {
  const found = providers.flatMap((provider) =>
    provider.zones
      .map(plainName)
      .filter((zone) => zone !== '' && isWithin(name, zone))
      .map((zone) => ({ provider, zone })),
  );
  return found.reduce<(typeof found)[number] | undefined>(
    (best, one) => (best === undefined || one.zone.length > best.zone.length ? one : best),
    undefined,
  );
}

/** The name of the TXT record for a domain (RFC 8555 §8.4); the same for `*.example.com` and `example.com`. */
export function challengeName(domain: string): string {
  return `_acme-challenge.${plainName(domain).replace(/^\*\./, '')}`;
}

/**
 * The final target of the CNAME records of `name`, or `name` itself; it need not exist. Queries the name servers of its
 * zone directly, because a cache would keep that the name does not exist yet, and the resolver only if none of them
 * responds. Throws DnsProviderError if the records loop or take more than ten hops, and if no server responds.
 */
export async function followCnames(servers: ZoneServers, name: string, signal: AbortSignal): Promise<string> {
  const trail = [plainName(name)];
  for (let at = trail[0] ?? ''; ; ) {
    const target = await aliasOf(servers, at, signal);
    if (target === undefined) return at;
    at = plainName(target);
    const isCircle = trail.includes(at);
    trail.push(at);
    if (isCircle) throw new DnsProviderError(`the CNAME records form a loop: ${trail.join(' → ')}`);
    if (trail.length > maxHops + 1) {
      throw new DnsProviderError(`more than ${maxHops} chained CNAME records: ${trail.join(' → ')}`);
    }
  }
}

async function aliasOf(servers: ZoneServers, name: string, signal: AbortSignal): Promise<string | undefined> {
  const canceled = () => new DnsProviderError(`looking up ${name} was canceled`, { cause: signal.reason });
  if (signal.aborted) throw canceled();
  const { resolver } = servers;
  try {
    const { places } = await servers.above(name);
    for (const { at } of places) {
      if (at === undefined) continue;
      try {
        return await resolver.cname(name, at);
      } catch (error) {
        if (!(error instanceof DnsProviderError) || signal.aborted) throw error;
        // Another server may answer; if none does, the resolver is queried.
      }
    }
    return await resolver.cname(name);
  } catch (error) {
    if (signal.aborted) throw canceled();
    const message = error instanceof Error ? error.message : String(error);
    throw new DnsProviderError(`failed to look up the CNAME of ${name}: ${message}`, {
      cause: error,
    });
  }
}
