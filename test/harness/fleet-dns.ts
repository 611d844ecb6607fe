/** The DNS of a fleet simulation: TXT records with the moments at which they came and went, and providers with delays. */

import type { World } from '../../src/base/world.ts';
import type { DnsProvider, TxtRecord } from '../../src/dns/dns-provider.ts';
import { DnsProviderError } from '../../src/dns/dns-provider.ts';
import type { DnsResolver } from '../../src/dns/resolver/dns-resolver.ts';

export type FleetProviderPlan = {
  /** How long a change takes until the provider has answered. */
  readonly changeMs: number;
  /** How long after that the name servers show it. */
  readonly lagMs: number;
  /** While it is down (UTC milliseconds) every change fails after half a minute. */
  readonly down?: readonly [from: number, to: number] | undefined;
};

type FleetRecord = {
  readonly since: number;
  readonly visibleAt: number;
  readonly down: readonly [from: number, to: number] | undefined;
};

export class FleetDns {
  readonly #world: World;
  readonly #records = new Map<string, Map<string, FleetRecord>>();
  /** The longest that a record stood, in milliseconds, of providers that were up meanwhile. */
  longest = 0;

  constructor(world: World) {
    this.#world = world;
  }

  provider({ changeMs, lagMs, down }: FleetProviderPlan): DnsProvider {
    const change = async (signal: AbortSignal, act: () => void) => {
      const now = this.#world.now();
      const isDown = down !== undefined && now >= down[0] && now < down[1];
      await this.#world.sleep(isDown ? 30_000 : changeMs, signal);
      if (signal.aborted || isDown) throw new DnsProviderError('the DNS provider does not answer');
      act();
    };
    return {
      present: (record, signal) => change(signal, () => this.#add(record, lagMs, down)),
      remove: (record, signal) => change(signal, () => this.#remove(record)),
    };
  }

  /** What the name servers show now. */
  txt(name: string): string[] {
    const now = this.#world.now();
    return [...(this.#records.get(name) ?? [])]
      .filter(([, { visibleAt }]) => visibleAt <= now)
      .map(([value]) => value);
  }

  /** How many records have stood for longer than this, of providers that were up for as long. */
  olderThan(ms: number): number {
    const now = this.#world.now();
    return [...this.#records.values()]
      .flatMap((values) => [...values.values()])
      .filter(
        ({ since, down }) =>
          now - since > ms && !(down !== undefined && now >= down[0] && now < down[1] + ms),
      ).length;
  }

  get resolver(): DnsResolver {
    const resolver = {
      txt: async (name: string) => this.txt(name),
      cname: async () => undefined,
      nameServers: async () => [],
      addresses: async () => [],
      negativeTtl: async () => 0,
      configured: '127.0.0.1:53',
    };
    return resolver as DnsResolver;
  }

  #add({ name, value }: TxtRecord, lagMs: number, down: FleetRecord['down']): void {
    const now = this.#world.now();
    const values = this.#records.get(name) ?? new Map();
    if (!values.has(value)) values.set(value, { since: now, visibleAt: now + lagMs, down });
    this.#records.set(name, values);
  }

  #remove({ name, value }: TxtRecord): void {
    const values = this.#records.get(name);
    const known = values?.get(value);
    if (values === undefined || known === undefined) return;
    const wasDown =
      known.down !== undefined && known.since < known.down[1] && this.#world.now() > known.down[0];
    if (!wasDown) this.longest = Math.max(this.longest, this.#world.now() - known.since);
    values.delete(value);
    if (values.size === 0) this.#records.delete(name);
  }
}
