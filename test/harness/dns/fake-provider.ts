/**
 * A DNS provider in the test process: an HTTP server on loopback with zones and TXT records that can simulate every
 * error between a vault and its provider.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { realWorld, type World } from '../../../src/base/world.ts';
import type { DnsContext, DnsProviderType } from '../../../src/dns/dns-provider.ts';
import type { Outbound } from '../../../src/net/outbound-http.ts';
import { loopbackGuard, loopbackOutbound } from '../loopback-guard.ts';

export type FakeRequest = {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The whole URL with host and query, which signatures cover. */
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

/** Returns undefined for an unknown method and path. */
export type FakeHandler = (request: FakeRequest) => FakeReply | undefined;

export class FakeProvider {
  /** Zones of the account, in the order in which they are listed. */
  readonly zones: { name: string; isPrivate: boolean }[] = [];
  records: HeldRecord[] = [];
  readonly requests: FakeRequest[] = [];
  /** Its URL for the vault: the address here, or the origin that it replaces. */
  url = '';
  #address = '';
  /** The page size of lists. */
  pageSize = 2;
  /** Incremented by every change. */
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

  /** Starts listening. With an origin, `outbound` redirects requests for it to this server. */
  async listen(origin?: string): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#address = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    this.url = origin ?? this.#address;
  }

  /** The real HTTP client, with the origin redirected to this server. */
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

  /** Responds to the next matching request instead of the API, once. */
  interrupt(reply: FakeReply, when: (request: FakeRequest) => boolean = () => true): void {
    this.#interruptions.push({ reply, when });
  }

  /** Removes all interruptions. */
  calm(): void {
    this.#interruptions.length = 0;
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
