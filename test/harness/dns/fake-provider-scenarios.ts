/** Scenarios that every DNS provider with an API must pass. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { type DnsProvider, DnsProviderError, type TxtRecord } from '../../../src/dns/dns-provider.ts';
import type { FakeReply } from '../http/fake-server.ts';
import { type FakeApi, FakeProvider, fakeContext, JumpingWorld } from './fake-provider.ts';

export const here = '_acme-challenge.www.example.com';
export const record: TxtRecord = {
  name: here,
  value: 'value-of-ours_1',
  zone: 'example.com',
  domain: 'www.example.com',
};
export const another: TxtRecord = { ...record, value: 'value-of-ours_2' };
const other = 'other-client';

export type Bench<Config> = {
  readonly api: FakeApi<Config>;
  readonly fake: FakeProvider;
  readonly provider: DnsProvider;
  readonly world: JumpingWorld;
  readonly signal: AbortSignal;
  /** A provider of the same type without the caches of the first one. */
  readonly made: (config: Config) => DnsProvider;
};

type Scenario = <Config>(bench: Bench<Config>) => Promise<void>;

const isTaken = { status: 302, headers: { Location: 'http://127.0.0.1:1/elsewhere' } } satisfies FakeReply;

const scenarios: Readonly<Record<string, Scenario>> = {
  'a value is presented and cleaned up': async ({ fake, provider, signal }) => {
    await provider.present(record, signal);
    assert.deepEqual(
      fake.records.map(({ name, value }) => [name, value]),
      [[here, record.value]],
    );
    await provider.remove(record, signal);
    assert.deepEqual(fake.records, []);
  },
  'other values at the name are kept': async ({ fake, provider, signal }) => {
    fake.set(here, [other]);
    await provider.present(record, signal);
    await provider.present(another, signal);
    assert.deepEqual(fake.values(here).sort(), [other, record.value, another.value].sort());
    await provider.remove(record, signal);
    assert.deepEqual(fake.values(here).sort(), [other, another.value].sort());
    await provider.remove(another, signal);
    assert.deepEqual(fake.values(here), [other]);
  },
  'presenting an existing value and cleaning up a missing one change nothing': async (bench) => {
    const { api, fake, provider, made, signal } = bench;
    await provider.present(record, signal);
    await provider.present(record, signal);
    await made(api.config(fake.url)).present(record, signal);
    assert.deepEqual(fake.values(here), [record.value]);
    await made(api.config(fake.url)).remove(record, signal);
    await provider.remove(record, signal);
    await provider.remove(record, signal);
    assert.deepEqual(fake.records, []);
  },
  'a record is found on any page of a long list': async ({ api, fake, made, signal }) => {
    const others = Array.from({ length: 7 }, (_, index) => `other-${index}`);
    fake.set(here, [...others, record.value]);
    await made(api.config(fake.url)).present(record, signal);
    assert.equal(fake.values(here).length, 8);
    await made(api.config(fake.url)).remove(record, signal);
    assert.deepEqual(fake.values(here), others);
  },
  'the longest zone of the account that contains the name is used': async ({ fake, provider, signal }) => {
    fake.zones.push(
      { name: 'dev.example.com', isPrivate: false },
      { name: 'ev.example.com', isPrivate: false },
    );
    const deep = { ...record, name: '_acme-challenge.a.dev.example.com' };
    await provider.present(deep, signal);
    assert.deepEqual(fake.values(deep.name), [record.value]);
    assert.equal(
      fake.requests.some(({ url, method }) => method !== 'GET' && /\/ev\.example/.test(url)),
      false,
    );
    await provider.remove(deep, signal);
    assert.deepEqual(fake.records, []);
  },
  'the zone of the account may be a parent of the configured zone': async ({ fake, provider, signal }) => {
    const below = { ...record, zone: 'www.example.com' };
    await provider.present(below, signal);
    assert.deepEqual(fake.values(here), [record.value]);
  },
  'the record may be its own zone': async ({ fake, provider, signal }) => {
    fake.zones.unshift({ name: here, isPrivate: false });
    await provider.present(record, signal);
    await provider.present(another, signal);
    assert.deepEqual(fake.values(here), [record.value, another.value]);
    await provider.remove(record, signal);
    assert.deepEqual(fake.values(here), [another.value]);
  },
  'the error for a missing zone contains the configured zone and what to check': async ({
    fake,
    provider,
    signal,
  }) => {
    const elsewhere = { ...record, name: '_acme-challenge.example.org', zone: 'example.org' };
    for (const work of [provider.present, provider.remove]) {
      const { message } = await refused(work(elsewhere, signal));
      assert.match(
        message,
        /has no zone for _acme-challenge\.example\.org \(configured as example\.org\)\. Check/,
      );
    }
    assert.deepEqual(fake.records, []);
  },
  'the error for wrong credentials lists the required permissions': async (bench) => {
    const { api, fake, made, world, signal } = bench;
    const error = await refused(made(api.wrong(fake.url)).present(record, signal));
    assert.match(
      error.message,
      /refused to .+ \(40[13]: [^)]+\)\. (The|Check) .+\.$|failed to .+ \(400: [^)]+\)$/,
    );
    assertKept(inspect(error, { depth: 20 }), api.secrets);
    assert.deepEqual(world.waits, []);
  },
  'the error for missing permissions quotes the provider': async (bench) => {
    const { api, fake, provider, world, signal } = bench;
    for (const status of [401, 403]) {
      // Twice, because the provider may fetch a new token after a rejection.
      fake.interrupt(api.error(status, 'not for you'), isChange(api));
      fake.interrupt(api.error(status, 'not for you'), isChange(api));
      const error = await refused(provider.present(record, signal));
      assert.match(
        error.message,
        new RegExp(`refused to .+ \\(${status}: not for you.*\\)\\. (The|Check) .+\\.$`),
      );
      assertKept(inspect(error, { depth: 20 }), api.secrets);
      fake.calm();
    }
    assert.deepEqual(world.waits, []);
    assert.deepEqual(fake.values(here), []);
  },
  'secrets and line breaks are removed from the provider’s messages': async (bench) => {
    const { api, fake, provider, signal } = bench;
    const words = `no\n\u0007 ${api.secrets.join(' ')} ${'x'.repeat(1000)}`;
    fake.interrupt(api.error(418, words), isChange(api));
    const { message } = await refused(provider.present(record, signal));
    assertKept(message, api.secrets.slice(0, 1));
    assert.match(message, /^[^\p{Cc}]{20,700}$/u);
  },
  'a short Retry-After is honored': async ({ api, fake, provider, world, signal }) => {
    for (const [header, ms] of [
      ['7', 7000],
      [new Date(world.now() + 7000 + 20_000).toUTCString(), 20_000],
    ] as const) {
      const headers = { 'Retry-After': header };
      fake.interrupt({
        ...api.error(429, 'slow down'),
        headers: { ...api.error(429, '').headers, ...headers },
      });
      await provider.present(record, signal);
      assert.equal(world.waits[0], ms);
      await provider.remove(record, signal);
      world.waits.length = 0;
      world.advance(Date.parse('2026-11-21T12:00:07Z') - world.now());
    }
  },
  'a long Retry-After is returned with the error': async ({ api, fake, provider, world, signal }) => {
    const { headers, ...limited } = api.error(429, 'slow down');
    fake.interrupt({ ...limited, headers: { ...headers, 'Retry-After': '120' } }, isChange(api));
    const error = await refused(provider.present(record, signal));
    assert.equal(error.retryAfterMs, 120_000);
    assert.match(error.message, /too many requests .*slow down.*; retry after 120 s$/);
    assert.deepEqual(world.waits, []);
  },
  'server errors are retried a limited number of times': async ({ api, fake, provider, world, signal }) => {
    fake.interrupt(api.error(500, 'oops'), isChange(api));
    fake.interrupt({ status: 502, text: '<html>Bad Gateway</html>' }, isChange(api));
    await provider.present(record, signal);
    assert.deepEqual(world.waits.slice(0, 2), [1000, 2000]);
    await provider.remove(record, signal);
    for (let times = 0; times < 4; times += 1) fake.interrupt(api.error(503, 'still oops'), isChange(api));
    const { message } = await refused(provider.present(record, signal));
    assert.match(message, /failed to .+ \(503: still oops/);
    await provider.present(record, signal);
  },
  'an unparsable response is an error': async ({ api, fake, provider, signal }) => {
    const page = {
      status: 200,
      text: 'Welcome to the hotel network!',
      headers: { 'Content-Type': 'text/html' },
    };
    fake.interrupt(page, (request) => api.isLogin?.(request) !== true);
    const { message } = await refused(provider.present(record, signal));
    assert.match(message, /unreadable response \(200, text\/html\)/);
    assert.doesNotMatch(message, /hotel/);
  },
  'a response with an unexpected structure is an error': async ({ api, fake, provider, signal }) => {
    fake.interrupt(api.strange, (request) => api.isLogin?.(request) !== true);
    const { message } = await refused(provider.present(record, signal));
    assert.match(message, /unexpected response|unreadable/);
  },
  'a redirect is not followed': async ({ api, fake, provider, signal }) => {
    fake.interrupt(isTaken, (request) => api.isLogin?.(request) !== true);
    const { message } = await refused(provider.present(record, signal));
    assert.match(message, /\(302: Found\)/);
  },
  'a list that shows a record late causes no error and leaves no record behind': async (bench) => {
    const { fake, provider, signal } = bench;
    const before = fake.records;
    fake.lagBehind(3, before);
    await provider.present(record, signal);
    await provider.present(record, signal);
    assert(fake.values(here).includes(record.value));
    fake.lagBehind(2, before);
    await provider.remove(record, signal);
    assert.deepEqual(fake.values(here), []);
  },
  'a record that another client adds at the same time is kept': async ({ fake, provider, signal }) => {
    fake.meanwhile(() => fake.add(here, other));
    await provider.present(record, signal);
    assert.deepEqual(fake.values(here).sort(), [other, record.value].sort());
  },
  'a record that another client removes at the same time causes no error': async ({
    fake,
    provider,
    signal,
  }) => {
    await provider.present(record, signal);
    fake.meanwhile(() => fake.remove(({ name }) => name === here));
    await provider.remove(record, signal);
    assert.deepEqual(fake.records, []);
  },
  'two values at one name are presented and cleaned up concurrently': async ({ fake, provider, signal }) => {
    await Promise.all([provider.present(record, signal), provider.present(another, signal)]);
    assert.deepEqual(fake.values(here).sort(), [record.value, another.value].sort());
    await Promise.all([provider.remove(record, signal), provider.remove(another, signal)]);
    assert.deepEqual(fake.records, []);
  },
  'a value that needs quoting is returned unchanged': async ({ fake, provider, signal }) => {
    const value = `ca.example; accounturi=https://ca.example/acct/1${'0'.repeat(300)}`;
    await provider.present({ ...record, value }, signal);
    assert.deepEqual(fake.values(here), [value]);
    await provider.present({ ...record, value }, signal);
    await provider.remove({ ...record, value }, signal);
    assert.deepEqual(fake.records, []);
  },
  'an abort stops the request': async ({ provider, fake }) => {
    await assert.rejects(provider.present(record, AbortSignal.abort()), DnsProviderError);
    assert.deepEqual(fake.records, []);
  },
  'an abort stops a wait': async ({ api, fake, provider, world }) => {
    const stop = new AbortController();
    const { headers, ...limited } = api.error(429, 'slow down');
    fake.interrupt({ ...limited, headers: { ...headers, 'Retry-After': '5' } });
    const promise = provider.present(record, stop.signal);
    while (fake.requests.length === 0) await world.turn();
    stop.abort();
    await assert.rejects(promise, DnsProviderError);
    assert.deepEqual(fake.records, []);
  },
  'the error for an unreachable server contains its address': async ({ api, made, world, signal }) => {
    const error = await refused(made(api.config('http://127.0.0.1:1')).present(record, signal));
    assertKept(inspect(error, { depth: 20 }), api.secrets);
    assert.match(error.message, /failed to .+: cannot connect to 127\.0\.0\.1:1: connection refused/);
    assert.deepEqual(world.waits, [1000, 2000, 4000]);
  },
  'settings are strict, and credentials are sent over https only': async ({ api, fake }) => {
    const { config } = api.type;
    const right = api.config(fake.url);
    const parsed = config.parse(JSON.parse(JSON.stringify(right)));
    assert.deepEqual(config.parse(parsed), parsed);
    const said = (change: object) => JSON.stringify(config.safeParse({ ...right, ...change }).error?.issues);
    assert.match(said({ api_tokne: 'x' }), /api_tokne/);
    for (const base_url of [
      'http://api.example',
      'https://u:p@api.example',
      'ftp://x',
      'nothing',
      7,
      'https://a/?b',
    ]) {
      assert.match(String(said({ base_url })), /must be an? (https:\/\/ )?URL/);
    }
    assert.match(JSON.stringify(config.safeParse({}).error?.issues), /must be/);
    const [first] = Object.keys(right as object).filter((key) => key !== 'endpoint');
    for (const value of ['', 'two words', 'line\nbreak', 12]) {
      const complaint: string = said({ [first ?? '']: value });
      assert.match(complaint, /must be/);
      assert.doesNotMatch(complaint, /two words|line\\/);
    }
  },
};

/** Runs the table for one provider. */
export function providerScenarios<Config>(api: FakeApi<Config>): void {
  for (const [title, scenario] of Object.entries(scenarios)) {
    test(`${api.type.type}: ${title}`, async () => {
      await using fake = await startFake(api);
      await scenario(bench(api, fake));
    });
  }
}

/** The API with a few zones, including similar ones. */
export async function startFake<Config>(api: FakeApi<Config>): Promise<FakeProvider> {
  const fake = new FakeProvider();
  fake.handler = api.handler(fake);
  const names = [
    'a.test',
    'com.test',
    'b.test',
    'notexample.com',
    'example.com',
    'xwww.example.com',
    'z.test',
  ];
  fake.zones.push(...names.map((name) => ({ name, isPrivate: false })));
  const secluded = ['example.com', 'example.com', 'example.com', 'www.example.com'];
  fake.zones.unshift(...secluded.map((name) => ({ name, isPrivate: true })));
  await fake.listen(api.origin);
  return fake;
}

export function bench<Config>(api: FakeApi<Config>, fake: FakeProvider): Bench<Config> {
  const context = fakeContext(new JumpingWorld(), fake.outbound);
  const made = (config: Config) => api.type.create(api.type.config.parse(config), context);
  const { signal } = new AbortController();
  return { api, fake, provider: made(api.config(fake.url)), world: context.world, signal, made };
}

/** Returns the error of an operation that must fail. */
export async function refused(work: Promise<unknown>): Promise<DnsProviderError> {
  const error = await work.then(
    () => assert.fail('it succeeded'),
    (reason: unknown) => reason,
  );
  assert(error instanceof DnsProviderError, String(error));
  return error;
}

export function assertKept(message: string, secrets: readonly string[]): void {
  for (const secret of secrets) assert(!message.includes(secret), `a secret leaked: ${message}`);
}

function isChange<Config>(api: FakeApi<Config>) {
  return (request: { method: string; path: string }) =>
    request.method !== 'GET' && api.isLogin?.(request as never) !== true;
}
