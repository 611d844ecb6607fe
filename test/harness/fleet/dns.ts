/**
 * The DNS of a fleet simulation: zones with the delays of real providers, and a note of each TXT record: since when it
 * stood, until when, and which renewal presented it.
 */
import type { World } from '../../../src/base/world.ts';
import type { DnsProvider, TxtRecord } from '../../../src/dns/dns-provider.ts';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';

import { SimulatedDns } from '../dns/simulated-dns.ts';
import { sleepingHook } from '../dns/simulated-dns-providers.ts';

export type Span = readonly [from: number, to: number];

export type FleetProviderPlan = {
  /** The real code of Route 53, a hook that makes the record and then sleeps, or an API that changes one record. */
  readonly kind: 'route53' | 'hook' | 'api';
  /** How long presenting takes: until the change is in sync, the hook has ended, or the API has answered. */
  readonly presentMs: number;
  /** How long removing takes; as long as presenting without it. */
  readonly removeMs?: number;
  /** How long after that each name server of a zone shows it. */
  readonly lagsMs?: readonly number[];
  /** The minimum of the SOA of its zones: how long a cache keeps that a name does not exist. */
  readonly negativeTtlMs: number;
};

/** A record at the primary server. */
export type StoodRecord = {
  readonly name: string;
  readonly since: number;
  /** Undefined while it stands. */
  until: number | undefined;
  /** The id of the renewal that presented it. */
  readonly renewal: number | undefined;
};

/** Which renewal has stored this record. */
export type OwnerOfRecord = (name: string, value: string) => number | undefined;

export class FleetDns extends SimulatedDns {
  readonly #world: World;
  readonly #standing = new Map<string, StoodRecord>();
  /** All records that there were. */
  readonly everStood: StoodRecord[] = [];
  ownerOf: OwnerOfRecord = () => undefined;

  constructor(world: World) {
    super(world);
    this.#world = world;
  }

  override set(name: string, values: Iterable<string>): void {
    const before = new Set(this.values(name));
    const after = new Set(values);
    super.set(name, after);
    const now = this.#world.now();
    for (const value of after) {
      if (before.has(value)) continue;
      const record = { name, since: now, until: undefined, renewal: this.ownerOf(name, value) };
      this.#standing.set(`${name} ${value}`, record);
      this.everStood.push(record);
    }
    for (const value of before) {
      const record = after.has(value) ? undefined : this.#standing.get(`${name} ${value}`);
      if (record === undefined) continue;
      record.until = now;
      this.#standing.delete(`${name} ${value}`);
    }
  }

  /** What a CA finds that asks several servers: the values that all of them show. */
  txt(name: string): string[] {
    return this.values(name).filter((value) => this.isEverywhere(name, value));
  }

  /** A provider of a plan that is not Route 53. While it is down every change fails after half a minute. */
  provider({ kind, presentMs, removeMs = presentMs }: FleetProviderPlan, down?: Span): DnsProvider {
    const world = this.#world;
    if (kind === 'hook') {
      return sleepingHook(world, this, { presentMs, removeMs, timeoutMs: 120_000, concurrency: 4 });
    }
    const change = async (ms: number, signal: AbortSignal, act: () => void) => {
      const isDown = down !== undefined && world.now() >= down[0] && world.now() < down[1];
      await world.sleep(isDown ? 30_000 : ms, signal);
      if (signal.aborted || isDown) throw new DnsProviderError('the DNS provider does not answer');
      act();
    };
    return {
      present: ({ name, value }: TxtRecord, signal) => change(presentMs, signal, () => this.add(name, value)),
      remove: ({ name, value }: TxtRecord, signal) =>
        change(removeMs, signal, () => this.remove(name, value)),
    };
  }
}
