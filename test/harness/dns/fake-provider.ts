/**
 * A DNS provider in the test process: an HTTP server on loopback with zones and TXT records that can simulate every
 * error between a vault and its provider.
 */
import { realWorld, type World } from '../../../src/base/world.ts';
import type { DnsContext, DnsProviderType } from '../../../src/dns/dns-provider.ts';
import type { Outbound } from '../../../src/net/outbound-http.ts';
import { type FakeHandler, type FakeReply, type FakeRequest, FakeServer } from '../http/fake-server.ts';
import { loopbackGuard, loopbackOutbound } from '../loopback-guard.ts';

export type HeldRecord = { readonly id: string; readonly name: string; readonly value: string };

/** A provider API for the scenarios: its settings, secrets and behavior. */
export type FakeApi<Config> = {
  readonly type: DnsProviderType<Config>;
  /** The origin of the real API; the vault quotes messages from this origin only. */
  readonly origin: string;
  /** Settings for the API at this URL. */
  readonly config: (url: string) => Config;
  /** The same with wrong credentials. */
  readonly wrong: (url: string) => Config;
  /** Secrets that no message may contain. */
  readonly secrets: readonly string[];
  readonly handler: (fake: FakeProvider) => FakeHandler;
  /** Its error for missing permissions, with the text `not for you`, and another error. */
  readonly error: (status: number, words: string) => FakeReply;
  /** A well-formed response with an unexpected structure. */
  readonly strange: FakeReply;
  /** Requests for credentials, which scenarios ignore. */
  readonly isLogin?: (request: FakeRequest) => boolean;
};

export class FakeProvider extends FakeServer {
  /** Zones of the account, in the order in which they are listed. */
  readonly zones: { name: string; isPrivate: boolean }[] = [];
  records: HeldRecord[] = [];
  /** The page size of lists. */
  pageSize = 2;
  /** Incremented by every change. */
  version = 1;
  #visible: HeldRecord[] | undefined;
  #lag = 0;
  readonly #beforeWrite: (() => void)[] = [];
  #nextId = 1;

  /** The actual records. */
  values(name: string): string[] {
    return this.records.filter((record) => record.name === name).map(({ value }) => value);
  }

  /** The records that a read returns: with a lag, those from when the lag began. */
  seen(): HeldRecord[] {
    if (this.#lag === 0 || this.#visible === undefined) return this.records;
    this.#lag -= 1;
    return this.#visible;
  }

  add(name: string, value: string): HeldRecord {
    const record = { id: String(this.#nextId++), name, value };
    this.records = [...this.records, record];
    this.version += 1;
    return record;
  }

  remove(isMeant: (record: HeldRecord) => boolean): boolean {
    const kept = this.records.filter((record) => !isMeant(record));
    const isChanged = kept.length < this.records.length;
    if (isChanged) this.version += 1;
    this.records = kept;
    return isChanged;
  }

  /** Replaces the values at a name. */
  set(name: string, values: readonly string[]): void {
    this.remove((record) => record.name === name);
    for (const value of values) this.add(name, value);
    this.version += 1;
  }

  /** Makes the next `reads` reads return these records. */
  lagBehind(reads: number, records: readonly HeldRecord[]): void {
    this.#visible = [...records];
    this.#lag = reads;
  }

  /** Runs a change by another client between the vault's read and its next change. */
  meanwhile(work: () => void): void {
    this.#beforeWrite.push(work);
  }

  /** Called by handlers just before they check a change. */
  writing(): void {
    this.#beforeWrite.shift()?.();
  }

  /** One page of a list, and whether there are more. `page` counts from 1. */
  page<T>(
    items: readonly T[],
    page: number,
    size = this.pageSize,
  ): { items: T[]; hasMore: boolean; pages: number } {
    const end = page * size;
    return {
      items: items.slice(end - size, end),
      hasMore: end < items.length,
      pages: Math.max(1, Math.ceil(items.length / size)),
    };
  }

  /** The names of the public zones. */
  get publicZones(): string[] {
    return this.zones.filter(({ isPrivate }) => !isPrivate).map(({ name }) => name);
  }

  /** The values that a read of a name returns. */
  seenAt(name: string): string[] {
    return this.seen()
      .filter((record) => record.name === name)
      .map(({ value }) => value);
  }
}

/** The full name of a record from its name relative to the zone, such as `@`. */
export function wholeName(relative: string | undefined, zone: string): string {
  return relative === undefined || relative === '@' || relative === '' ? zone : `${relative}.${zone}`;
}

/** A clock that skips every wait and records it. */
export class JumpingWorld implements World {
  readonly waits: number[] = [];
  #now = Date.parse('2026-11-21T12:00:00Z');
  #elapsed = 0;
  readonly now = (): number => this.#now;
  readonly elapsed = (): number => this.#elapsed;
  readonly turn = realWorld.turn;
  readonly randomBytes = realWorld.randomBytes;

  readonly sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    if (signal?.aborted === true) return;
    this.waits.push(ms);
    this.advance(ms);
    await realWorld.turn();
  };

  advance(ms: number): void {
    this.#now += ms;
    this.#elapsed += ms;
  }

  /** Someone sets the clock, by this much. */
  set(ms: number): void {
    this.#now += ms;
  }
}

/** The context of providers: the real HTTP client and a clock that skips waits. */
export function fakeContext(
  world = new JumpingWorld(),
  outbound: Outbound = loopbackOutbound,
): DnsContext & { readonly world: JumpingWorld } {
  const unavailable = () => Promise.reject(new Error('providers must not query name servers'));
  return {
    world,
    outbound,
    guard: loopbackGuard,
    resolver: {
      ...{
        txt: unavailable,
        cname: unavailable,
        nameServers: unavailable,
        addresses: unavailable,
        negativeTtl: unavailable,
      },
      configured: undefined,
    },
    log: new Proxy({} as DnsContext['log'], {
      get: () => () => {
        throw new Error('providers must not log');
      },
    }),
  };
}
