/**
 * The DNS as a fleet meets it, in memory and on the clock of the test: zones whose servers show a change only after a
 * while, and caches that keep that a name does not exist for as long as the zone's SOA says (RFC 2308).
 *
 *     const dns = new SimulatedDns(world);
 *     dns.zone('example.test', { lagsMs: [0, 20_000], negativeTtlMs: hour });
 *     const resolver = dns.resolver({ configured: '1.1.1.1:53' });
 */

import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { upwards } from '../../../src/dns/resolver/dns-name.ts';
import type { DnsResolver } from '../../../src/dns/resolver/dns-resolver.ts';

export type SimulatedZone = {
  readonly name: string;
  /** For each name server, how long after a change it shows it. */
  lagsMs: readonly number[];
  /** The minimum of the SOA: how long caches keep that a name does not exist. */
  negativeTtlMs: number;
  /** Whether its name servers can be reached from the vault. */
  isReachable: boolean;
};

export type SimulatedQuestion = { readonly type: string; readonly name: string; readonly server: string };

/** From `at` on, a name has these values at the primary server. */
type Change = { readonly at: number; readonly values: ReadonlySet<string> };

const positiveTtlMs = 60_000;

export class SimulatedDns {
  readonly #now: () => number;
  readonly #zones = new Map<string, SimulatedZone>();
  /** In the order in which they were added, and the place of each in it. */
  readonly #list: SimulatedZone[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #changes = new Map<string, Change[]>();
  readonly aliases = new Map<string, string>();
  /** Names that exist beside those of records, such as hosts. */
  readonly hosts = new Set<string>();
  /** All questions, where a test wants to count them. */
  questions: SimulatedQuestion[] | undefined;

  constructor(world: { readonly now: () => number }) {
    this.#now = world.now;
  }

  /** Adds a zone; without more it has two servers that show a change at once, and an SOA minimum of an hour. */
  zone(name: string, options: Partial<Omit<SimulatedZone, 'name'>> = {}): SimulatedZone {
    const zone = { name, lagsMs: [0, 0], negativeTtlMs: 3_600_000, isReachable: true, ...options };
    if (!this.#zones.has(name)) this.#numbers.set(name, this.#list.push(zone) - 1);
    else this.#list[this.#numbers.get(name) ?? -1] = zone;
    this.#zones.set(name, zone);
    return zone;
  }

  get zones(): readonly SimulatedZone[] {
    return this.#list;
  }

  /** The closest zone that holds a name. */
  zoneOf(name: string): SimulatedZone | undefined {
    for (const above of upwards(name)) {
      const zone = this.#zones.get(above);
      if (zone !== undefined) return zone;
    }
    return undefined;
  }

  /** What the primary server has at a name. */
  values(name: string): readonly string[] {
    return [...(this.#changes.get(name)?.at(-1)?.values ?? [])];
  }

  /** Replaces what the primary server has at a name. */
  set(name: string, values: Iterable<string>): void {
    const changes = this.#changes.get(name) ?? [];
    const horizon = this.#now() - Math.max(0, ...(this.zoneOf(name)?.lagsMs ?? []));
    // The last change before the horizon is what the slowest server shows.
    while (changes.length > 1 && (changes[1]?.at ?? 0) <= horizon) changes.shift();
    changes.push({ at: this.#now(), values: new Set(values) });
    this.#changes.set(name, changes);
  }

  add(name: string, value: string): void {
    this.set(name, [...this.values(name), value]);
  }

  remove(name: string, value: string): void {
    this.set(
      name,
      this.values(name).filter((held) => held !== value),
    );
  }

  /** `name value` of each TXT record that the primary servers have now. */
  get records(): readonly string[] {
    return [...this.#changes.keys()].flatMap((name) => this.values(name).map((value) => `${name} ${value}`));
  }

  /** What a name server of the zone shows, by its number. */
  shown(name: string, server: number): readonly string[] {
    const lag = this.zoneOf(name)?.lagsMs[server] ?? 0;
    const seen = this.#changes.get(name)?.findLast(({ at }) => at + lag <= this.#now());
    return [...(seen?.values ?? [])];
  }

  /**
   * Whether all name servers of the zone show a value at a name, behind its alias: whichever the CA asks, it finds it.
   */
  isEverywhere(name: string, value: string): boolean {
    const target = this.aliases.get(name) ?? name;
    const servers = this.zoneOf(target)?.lagsMs ?? [];
    return servers.length > 0 && servers.every((_, index) => this.shown(target, index).includes(value));
  }

  /**
   * A resolver. With `configured` it says that it is one that was chosen by `--resolver`. It keeps answers as a cache
   * does unless `isCaching` is false, and asks the servers of a zone in turn.
   */
  resolver(options: { readonly configured?: string; readonly isCaching?: boolean } = {}): DnsResolver {
    const { configured, isCaching = true } = options;
    const cache = new Map<string, { readonly until: number; readonly answer: readonly string[] }>();
    const absent = new Map<string, number>();
    let turn = 0;
    const cached = (type: string, name: string): readonly string[] => {
      this.questions?.push({ type, name, server: configured ?? 'system' });
      const now = this.#now();
      const known = cache.get(`${type} ${name}`);
      if (known !== undefined && known.until > now) return known.answer;
      // That a name does not exist holds for all types.
      if ((absent.get(name) ?? 0) > now) return [];
      turn += 1;
      const zone = this.zoneOf(name);
      const server = turn % (zone?.lagsMs.length || 1);
      const answer = this.#answer(type, name, server);
      const ttl = answer.length > 0 ? positiveTtlMs : (zone?.negativeTtlMs ?? 0);
      if (isCaching && !this.#exists(name, server)) absent.set(name, now + ttl);
      else if (isCaching) cache.set(`${type} ${name}`, { until: now + ttl, answer });
      return answer;
    };
    const ask = (type: string, name: string, server: string | undefined): readonly string[] => {
      if (server === undefined || server === configured) return cached(type, name);
      this.questions?.push({ type, name, server });
      const [zone, index] = this.#serverAt(server);
      if (zone === undefined || !zone.isReachable) {
        throw new DnsProviderError(`query for the ${type} of ${name} failed: ${server} is unreachable`);
      }
      return this.zoneOf(name) === zone || type === 'NS' ? this.#answer(type, name, index) : [];
    };
    return {
      configured,
      txt: async (name, server) => [...ask('TXT', name, server)],
      cname: async (name, server) => ask('CNAME', name, server)[0],
      nameServers: async (name, server) => [...ask('NS', name, server)],
      addresses: async (name) => [...cached('A', name)],
      negativeTtl: async (zone) => this.#zones.get(zone)?.negativeTtlMs ?? 0,
    };
  }

  #answer(type: string, name: string, server: number): readonly string[] {
    if (type === 'A') return this.#zones.has(name.replace(/^ns\d+\./, '')) ? [this.#address(name)] : [];
    if (type === 'NS') return this.#zones.get(name)?.lagsMs.map((_, index) => `ns${index}.${name}`) ?? [];
    const alias = this.aliases.get(name);
    if (type === 'CNAME') return alias === undefined ? [] : [alias];
    return this.shown(alias ?? name, server);
  }

  #exists(name: string, server: number): boolean {
    const isKnown = this.#zones.has(name) || this.aliases.has(name) || this.hosts.has(name);
    return isKnown || /^ns\d+\./.test(name) || this.shown(name, server).length > 0;
  }

  /** `ns1.example.test` of the third zone is at 10.0.2.1. */
  #address(server: string): string {
    const [, index = '', zone = ''] = /^ns(\d+)\.(.*)$/.exec(server) ?? [];
    const number = this.#numbers.get(zone) ?? -1;
    return `10.${number >> 8}.${number & 255}.${index}`;
  }

  #serverAt(address: string): [zone: SimulatedZone | undefined, index: number] {
    const [, high = 0, low = 0, index = 0] = address.replace(/:\d+$/, '').split('.').map(Number);
    return [this.zones[(high << 8) + low], index];
  }
}
