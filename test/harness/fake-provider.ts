/**
 * A DNS provider in the test process: a server on loopback over real HTTP, with zones that keep their TXT records, and
 * with everything that can go wrong between a vault and its provider, on request.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { realWorld, type World } from '../../src/base/world.ts';
import type { DnsContext, DnsProviderType } from '../../src/dns/dns-provider.ts';
import type { Outbound } from '../../src/net/outbound-http.ts';
import { loopbackGuard, loopbackOutbound } from './loopback-guard.ts';

export type FakeRequest = {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** As it was asked for, with host and query: what signatures are about. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type FakeReply = {
  readonly status: number;
  readonly json?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

export type HeldRecord = { readonly id: string; readonly name: string; readonly value: string };

/** An API as the tests know it: what it takes, what it must keep to itself, and how it behaves. */
export type FakeApi<Config> = {
  readonly type: DnsProviderType<Config>;
  /** Where the real one is: its words are shown from there alone. */
  readonly origin: string;
  /** Settings for the API at this URL. */
  readonly config: (url: string) => Config;
  /** The same with credentials that it does not take. */
  readonly wrong: (url: string) => Config;
  /** In no message, whatever happens. */
  readonly secrets: readonly string[];
  readonly handler: (fake: FakeProvider) => FakeHandler;
  /** How it refuses what the credentials may not do, with the words `not for you`, and how it fails with other words. */
  readonly error: (status: number, words: string) => FakeReply;
  /** Something well-formed that the API never says. */
  readonly strange: FakeReply;
  /** Where the credentials come from is not what a scenario is about. */
  readonly isLogin?: (request: FakeRequest) => boolean;
};

/** Undefined where there is nothing at that method and path. */
export type FakeHandler = (request: FakeRequest) => FakeReply | undefined;

export class FakeProvider {
  /** Zones of the account, in the order in which they are listed. */
  readonly zones: { name: string; isPrivate: boolean }[] = [];
  records: HeldRecord[] = [];
  readonly requests: FakeRequest[] = [];
  /** What the vault calls it: its address here, or the origin that it stands for. */
  url = '';
  #address = '';
  /** Answers with the provider's own page size where it has pages. */
  pageSize = 2;
  /** Goes up with every change. */
  version = 1;
  #visible: HeldRecord[] | undefined;
  #lag = 0;
  readonly #interruptions: { readonly reply: FakeReply; readonly when: (request: FakeRequest) => boolean }[] =
    [];
  readonly #beforeWrite: (() => void)[] = [];
  #nextId = 1;
  readonly #server = createServer((request, response) => {
    void this.#answer(request).then(({ status, json, text, headers }) => {
      const body = text ?? (json === undefined ? '' : JSON.stringify(json));
      const type = text === undefined ? 'application/json' : 'text/plain';
      response.writeHead(status, { 'Content-Type': type, ...headers }).end(body);
    });
  });
  handler: FakeHandler = () => undefined;

  /** Listens; with an origin, `outbound` leads from there to here. */
  async listen(origin?: string): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#address = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    this.url = origin ?? this.#address;
  }

  /** The real HTTP client, for which the origin is here. */
  readonly outbound: Outbound = (request) => {
    const { origin, host } = new URL(request.url);
    if (origin !== this.url) return loopbackOutbound(request);
    const url = `${this.#address}${request.url.slice(origin.length)}`;
    return loopbackOutbound({ ...request, url, headers: { ...request.headers, Host: host } });
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server, 'close');
  }

  /** What is really there. */
  values(name: string): string[] {
    return this.records.filter((record) => record.name === name).map(({ value }) => value);
  }

  /** What a read shows: with a lag, what was there when the lag began. */
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

  /** The next `reads` reads show these records. */
  lagBehind(reads: number, records: readonly HeldRecord[]): void {
    this.#visible = [...records];
    this.#lag = reads;
  }

  /** Answers the next request that fits in place of the API, once. */
  interrupt(reply: FakeReply, when: (request: FakeRequest) => boolean = () => true): void {
    this.#interruptions.push({ reply, when });
  }

  /** No more interruptions. */
  calm(): void {
    this.#interruptions.length = 0;
  }

  /** Somebody else does this between the vault's reading and its next change. */
  meanwhile(work: () => void): void {
    this.#beforeWrite.push(work);
  }

  /** Called by handlers just before they look whether a change may be made. */
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

  /** Names of the zones that everybody may see. */
  get publicZones(): string[] {
    return this.zones.filter(({ isPrivate }) => !isPrivate).map(({ name }) => name);
  }

  /** Values that a read of a name shows. */
  seenAt(name: string): string[] {
    return this.seen()
      .filter((record) => record.name === name)
      .map(({ value }) => value);
  }

  async #answer(incoming: IncomingMessage): Promise<FakeReply> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    const url = new URL(incoming.url ?? '/', this.url);
    const request: FakeRequest = {
      method: incoming.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      url: `${this.url}${incoming.url}`,
      headers: Object.fromEntries(
        Object.entries(incoming.headersDistinct).map(([name, values]) => [name, (values ?? []).join(', ')]),
      ),
      body: Buffer.concat(chunks).toString(),
    };
    this.requests.push(request);
    const index = this.#interruptions.findIndex(({ when }) => when(request));
    const [interruption] = index === -1 ? [] : this.#interruptions.splice(index, 1);
    return interruption?.reply ?? this.handler(request) ?? { status: 404, json: {} };
  }
}

/** The whole name of a record that a zone calls `@` or by the labels before its own. */
export function wholeName(relative: string | undefined, zone: string): string {
  return relative === undefined || relative === '@' || relative === '' ? zone : `${relative}.${zone}`;
}

/** A clock that jumps over every wait and keeps a list of them. */
export class JumpingWorld implements World {
  readonly waits: number[] = [];
  #now = Date.parse('2026-11-21T12:00:00Z');
  readonly now = (): number => this.#now;
  readonly turn = realWorld.turn;
  readonly randomBytes = realWorld.randomBytes;

  readonly sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    if (signal?.aborted === true) return;
    this.waits.push(ms);
    this.#now += ms;
    await realWorld.turn();
  };

  advance(ms: number): void {
    this.#now += ms;
  }
}

/** What providers are made with: the real HTTP client, and a clock that jumps. */
export function fakeContext(
  world = new JumpingWorld(),
  outbound: Outbound = loopbackOutbound,
): DnsContext & { readonly world: JumpingWorld } {
  const nobody = () => Promise.reject(new Error('providers ask no name servers'));
  return {
    world,
    outbound,
    guard: loopbackGuard,
    resolver: {
      ...{ txt: nobody, cname: nobody, nameServers: nobody, addresses: nobody, negativeTtl: nobody },
      configured: undefined,
    },
    log: new Proxy({} as DnsContext['log'], {
      get: () => () => {
        throw new Error('providers log nothing');
      },
    }),
  };
}
