/**
 * The authoritative name servers of a name, found through the resolver and then asked directly: what they say is not from
 * a cache, and what they are asked stays in none.
 */
import { isIPv6 } from 'node:net';
import { plainName, upwards } from './dns-name.ts';
import type { DnsResolver } from './dns-resolver.ts';

/** A name server at one of its addresses. `at` is `ip:port`, and missing where it has no address. */
export type ServerPlace = { readonly label: string; readonly at?: string };

/** Name servers of a zone; neither a zone nor servers where the resolver knows of none. */
export type ServersOfZone = {
  readonly zone: string | undefined;
  readonly places: readonly ServerPlace[];
  /** Whether there may be a closer zone, because the resolver failed when it was asked for one. */
  readonly isUnsure?: boolean;
};

/** Remembers what it has found, for one piece of work about many names. */
export class ZoneServers {
  readonly resolver: DnsResolver;
  readonly #names = new Map<string, Promise<readonly string[]>>();
  readonly #places = new Map<string, Promise<readonly ServerPlace[]>>();

  constructor(resolver: DnsResolver) {
    this.resolver = resolver;
  }

  /**
   * The servers of the closest zone above the name. The resolver is asked for domains above it only: the name itself may
   * not exist yet, and the resolver would keep that. Where it fails for one of them, as it does where hosts are served by
   * devices that know no NS records, those above are asked all the same. Throws DnsProviderError where it knows of none
   * and failed.
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
   * The servers of the zone that the name itself is the apex of, as those above refer to them; undefined where it is none.
   * The first of `places` that answers says so.
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

  /** Port 53, unless it is the configured resolver's own address: that one says where it listens. */
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
