/**
 * The authoritative name servers of a name, found through the resolver and then queried directly, so that no cache is
 * involved.
 */
import { isIPv6 } from 'node:net';
import { plainName, upwards } from './dns-name.ts';
import type { DnsResolver } from './dns-resolver.ts';

/** A name server at one of its addresses. `at` is `ip:port`, and missing if it has no address. */
export type ServerPlace = { readonly label: string; readonly at?: string };

/** Name servers of a zone; no zone and no servers if the resolver knows none. */
export type ServersOfZone = {
  readonly zone: string | undefined;
  readonly places: readonly ServerPlace[];
  /** Whether there may be a closer zone, because the resolver failed to look it up. */
  readonly isUnsure?: boolean;
};

/** Caches what it has found, for one task with many names. */
export class ZoneServers {
  readonly resolver: DnsResolver;
  readonly #names = new Map<string, Promise<readonly string[]>>();
  readonly #places = new Map<string, Promise<readonly ServerPlace[]>>();

  constructor(resolver: DnsResolver) {
    this.resolver = resolver;
  }

  /**
   * The servers of the closest parent zone. The resolver is queried only for parent domains: the name itself may not
   * exist yet, and the resolver would cache that. If it fails for one of them, as with devices that do not support NS
   * records, the other parents are still queried. Throws DnsProviderError if it found none and failed.
   */
  async above(name: string): Promise<ServersOfZone> {
    const [own = '', ...above] = upwards(plainName(name));
    const failures: unknown[] = [];
    for (const zone of above.length > 0 ? above : [own]) {
      try {
        const servers = await this.#serversOf(zone);
        if (servers.length === 0) continue;
        return { zone, places: await this.#placesOfAll(servers), isUnsure: failures.length > 0 };
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
    return { zone: undefined, places: [] };
  }

  /**
   * The servers of the zone whose apex is the name itself, according to the referrals of its parents; undefined if it
   * is not an apex. The first of `places` that responds decides.
   */
  async delegated(name: string, places: readonly ServerPlace[]): Promise<ServersOfZone | undefined> {
    for (const { at } of places) {
      if (at === undefined) continue;
      const servers = await this.resolver.nameServers(name, at).catch(() => undefined);
      if (servers === undefined) continue;
      return servers.length === 0 ? undefined : { zone: name, places: await this.#placesOfAll(servers) };
    }
    return undefined;
  }

  #serversOf(zone: string): Promise<readonly string[]> {
    return remembered(this.#names, zone, () => this.resolver.nameServers(zone));
  }

  async #placesOfAll(servers: readonly string[]): Promise<readonly ServerPlace[]> {
    const places = servers.map((server) => remembered(this.#places, server, () => this.#placesOf(server)));
    return (await Promise.all(places)).flat();
  }

  async #placesOf(server: string): Promise<readonly ServerPlace[]> {
    const addresses = await this.resolver.addresses(server).catch(() => {
      // Treated as a server without an address; the others decide.
      return [];
    });
    if (addresses.length === 0) return [{ label: server }];
    return addresses.map((ip) => ({ label: `${server} (${ip})`, at: this.#address(ip) }));
  }

  /** Port 53, unless it is the address of the configured resolver, which includes the port. */
  #address(ip: string): string {
    const { configured } = this.resolver;
    const host = isIPv6(ip) ? `[${ip}]` : ip;
    return configured?.startsWith(`${host}:`) ? configured : `${host}:53`;
  }
}

/** Returns the cached value, or computes and caches it; failures are not cached. */
function remembered<T>(known: Map<string, Promise<T>>, key: string, find: () => Promise<T>): Promise<T> {
  const before = known.get(key);
  if (before !== undefined) return before;
  const found = find();
  known.set(key, found);
  found.catch(() => known.delete(key));
  return found;
}
