/** A record counts as visible when everybody whom a CA may ask shows it, and else people learn who shows what. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import type { DnsResolver } from '../../../src/dns/resolver/dns-resolver.ts';
import { waitUntilVisible } from '../../../src/dns/resolver/propagation.ts';
import { systemResolver } from '../../../src/dns/resolver/system-resolver.ts';
import { type FakeDns, fakeDns } from '../../harness/dns/fake-dns.ts';
import { JumpingWorld } from '../../harness/dns/fake-provider.ts';
import { SimulatedDns } from '../../harness/dns/simulated-dns.ts';
import { loopbackGuard } from '../../harness/loopback-guard.ts';
import { freePort } from '../../harness/processes/port.ts';

const name = '_acme-challenge.www.example.test';
const record = { name, value: 'wanted' };
const shows = { [`TXT ${name}`]: ['another', 'wanted'] };
const never = new AbortController().signal;
/** For questions that are answered: longer than any machine is busy. */
const patient = { timeoutMs: 20_000, tries: 1 };
/** For tests that wait for silence. */
const hasty = { timeoutMs: 500, tries: 1 };

/** A resolver that knows the name servers, and finds port 53 of their addresses at servers in this process. */
async function authoritative(
  t: { after: (hook: () => unknown) => void },
  servers: Readonly<Record<string, FakeDns | string>>,
  limits = patient,
): Promise<{ resolver: DnsResolver; system: FakeDns }> {
  const names = Object.keys(servers);
  const system = await fakeDns(t, {
    'NS example.test': names,
    ...Object.fromEntries(names.map((server, index) => [`A ${server}`, [`192.0.2.${index + 1}`]])),
  });
  const real = systemResolver(system.server, limits, loopbackGuard);
  const txt = (asked: string, server?: string) => {
    const index = names.findIndex((_, at) => server === `192.0.2.${at + 1}:53`);
    const target = Object.values(servers)[index];
    assert(target !== undefined, `asked ${server}`);
    return real.txt(asked, typeof target === 'string' ? target : target.server);
  };
  return { system, resolver: { ...real, configured: undefined, txt } };
}

/** Ends with the record seen, with a list of what was said at each pause. */
async function wait(
  resolver: DnsResolver,
  options: { world?: JumpingWorld; timeoutMs?: number; at?: (pause: number) => void } = {},
) {
  const said: string[] = [];
  const onWaiting = (state: string) => {
    said.push(state);
    options.at?.(said.length);
  };
  const world = options.world ?? new JumpingWorld();
  await waitUntilVisible(
    { world, resolver },
    [record],
    { timeoutMs: options.timeoutMs ?? 60_000, onWaiting },
    never,
  );
  return said;
}

suite('authoritative servers', () => {
  test('all servers of the closest zone above the name are queried', async (t) => {
    const [one, two] = [await fakeDns(t, shows), await fakeDns(t, shows)];
    const { resolver, system } = await authoritative(t, { 'ns1.test': one, 'ns2.test': two });
    assert.deepEqual(await wait(resolver), []);
    assert.equal(one.questions.length, 1);
    assert.equal(two.questions.length, 1);
    const asked = system.questions.filter(({ type }) => type === 'NS').map((question) => question.name);
    assert.deepEqual(asked, ['www.example.test', 'example.test'], 'no cache learns of the name itself');
  });

  test('a lagging server is polled at growing intervals and reported while waiting', async (t) => {
    const [one, two] = [await fakeDns(t, shows), await fakeDns(t, { [`TXT ${name}`]: ['old "value"'] })];
    const { resolver } = await authoritative(t, { 'ns1.test': one, 'ns2.test': two });
    const world = new JumpingWorld();
    const at = (pause: number) => {
      if (pause === 2) two.records = {};
      if (pause === 7) two.records = shows;
    };
    const said = await wait(resolver, { world, at, timeoutMs: 300_000 });
    assert.equal(said[0], 'ns2.test (192.0.2.2) has "old \\"value\\""; 1 of 2 servers have it');
    assert.equal(said[2], 'ns2.test (192.0.2.2) has no TXT record; 1 of 2 servers have it');
    assert.deepEqual(world.waits, [1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
  });

  for (const trouble of ['SERVFAIL', 'silence'] as const) {
    test(`a failing server (${trouble}) is skipped after three polls if another server has the record`, async (t) => {
      const [one, two] = [await fakeDns(t, shows), await fakeDns(t)];
      two.trouble = () => trouble;
      const limits = trouble === 'silence' ? hasty : patient;
      const { resolver } = await authoritative(t, { 'ns1.test': one, 'ns2.test': two }, limits);
      const said = await wait(resolver);
      assert.equal(said.length, 2);
      assert.match(
        said[0] ?? '',
        /^ns2\.test \(192\.0\.2\.2\) could not be queried: .*; 1 of 2 servers have it$/,
      );
    });
  }

  test('a server that recovers without the record is not skipped', async (t) => {
    const [one, two] = [await fakeDns(t, shows), await fakeDns(t)];
    two.trouble = () => 'REFUSED';
    const { resolver } = await authoritative(t, { 'ns1.test': one, 'ns2.test': two });
    const at = (pause: number) => {
      two.trouble = () => (pause % 3 === 2 ? undefined : 'REFUSED');
      if (pause === 8) two.records = shows;
    };
    const said = await wait(resolver, { at, timeoutMs: 300_000 });
    assert.equal(said.length, 8);
    assert.match(said.join('\n'), /ns2\.test \(192\.0\.2\.2\) has no TXT record/);
  });

  test('the wait fails if every server is unreachable', async (t) => {
    const { resolver } = await authoritative(t, { 'ns1.test': `127.0.0.1:${await freePort()}` });
    await assert.rejects(
      wait(resolver),
      /ns1\.test \(192\.0\.2\.1\) could not be queried: .* is unreachable/,
    );
  });

  test('a server without an address counts as failing until it has one', async (t) => {
    const [one, two] = [await fakeDns(t, shows), await fakeDns(t, shows)];
    const { resolver, system } = await authoritative(t, { 'ns1.test': one, 'ns2.test': two });
    const complete = system.records;
    system.records = { ...complete, 'A ns2.test': [] };
    const at = () => {
      system.records = complete;
    };
    assert.deepEqual(await wait(resolver, { at }), ['ns2.test has no address; 1 of 2 servers have it']);
    assert.equal(two.questions.length, 1);
    system.records = { ...complete, 'A ns2.test': [] };
    assert.equal((await wait(resolver)).length, 2, 'passed over after three looks');
  });

  test('a failed NS query is retried at the next poll', async (t) => {
    const { resolver, system } = await authoritative(t, { 'ns1.test': await fakeDns(t, shows) });
    system.trouble = () => 'SERVFAIL';
    const at = () => {
      system.trouble = () => undefined;
    };
    const said = await wait(resolver, { at });
    assert.equal(said.length, 1);
    assert.match(said[0] ?? '', /query for the NS of www\.example\.test failed: .* answered SERVFAIL/);
  });

  test('IPv6 addresses are queried in brackets', async () => {
    const asked: (string | undefined)[] = [];
    const resolver: DnsResolver = {
      configured: undefined,
      txt: async (_, server) => {
        asked.push(server);
        return ['wanted'];
      },
      cname: async () => undefined,
      nameServers: async () => ['ns.test'],
      addresses: async () => ['192.0.2.1', '2001:db8::1'],
      negativeTtl: async () => 0,
    };
    await wait(resolver);
    assert.deepEqual(asked, ['192.0.2.1:53', '[2001:db8::1]:53']);
  });

  test('an error is reported if no parent domain has name servers', async (t) => {
    const dns = await fakeDns(t);
    const resolver = { ...systemResolver(dns.server, patient, loopbackGuard), configured: undefined };
    await assert.rejects(wait(resolver), /no name servers found for _acme-challenge\.www\.example\.test/);
  });
});

/** A name server that stands still for a resolver with a cache, in front of two others: who is asked, and when. */
function simulated(options: { isReachable?: boolean; lagsMs?: number[]; negativeTtlMs?: number } = {}) {
  const world = new JumpingWorld();
  const dns = new SimulatedDns(world);
  dns.questions = [];
  dns.zone('example.test', options);
  dns.hosts.add('www.example.test');
  const toCache = () => dns.questions?.filter(({ server, type }) => server === cache && type === 'TXT') ?? [];
  return { world, dns, toCache };
}

const cache = '192.0.2.53:53';

suite('a configured resolver', () => {
  test('is queried for the name servers, but not for the record', async () => {
    const { world, dns, toCache } = simulated({ lagsMs: [0, 20_000] });
    dns.add(name, 'wanted');
    const resolver = dns.resolver({ configured: cache });
    const said = await wait(resolver, { world });
    assert.match(
      said[0] ?? '',
      /^ns1\.example\.test \(10\.0\.0\.1\) has no TXT record; 1 of 2 servers have it$/,
    );
    assert.deepEqual(toCache(), []);
  });

  test('is queried for the record if it knows no name servers', async (t) => {
    const dns = await fakeDns(t, {});
    const at = (pause: number) => {
      if (pause === 3) dns.records = shows;
    };
    const said = await wait(systemResolver(dns.server, patient, loopbackGuard), { at });
    assert.deepEqual(said, Array(3).fill(`the resolver ${dns.server} has no TXT record`));
  });

  test('is queried for the record until its cached negative response expires if no name server is reachable', async () => {
    const { world, dns, toCache } = simulated({ isReachable: false, negativeTtlMs: 3_600_000 });
    const resolver = dns.resolver({ configured: cache });
    assert.deepEqual(await resolver.txt(name), [], 'created by another client');
    const planted = world.now();
    dns.add(name, 'wanted');
    const said = await wait(resolver, { world, timeoutMs: 600_000 });
    assert(world.now() - planted >= 3_600_000);
    assert(toCache().length > 1);
    assert.match(said.at(-1) ?? '', /is unreachable.*; the resolver 192\.0\.2\.53:53 has no TXT record$/);
  });

  test('is trusted after five minutes in which the name servers do not have the record', async () => {
    const { world, dns, toCache } = simulated();
    const resolver = dns.resolver({ configured: cache });
    const outside = {
      ...resolver,
      txt: async (asked: string, server?: string) =>
        server === undefined ? ['wanted'] : resolver.txt(asked, server),
    };
    const begun = world.now();
    await wait(outside, { world, timeoutMs: 600_000 });
    assert(world.now() - begun >= 300_000, `${world.now() - begun}`);
    assert.deepEqual(toCache(), []);
  });

  test('is queried on its own port if a name server has its address', async (t) => {
    const dns = await fakeDns(t, { 'NS example.test': ['ns.test'], 'A ns.test': ['127.0.0.1'], ...shows });
    assert.deepEqual(await wait(systemResolver(dns.server, patient, loopbackGuard)), []);
    assert.equal(dns.questions.filter(({ type }) => type === 'TXT').length, 1);
  });

  test('is not skipped if it fails', async (t) => {
    const dns = await fakeDns(t, shows);
    dns.trouble = () => 'SERVFAIL';
    await assert.rejects(wait(systemResolver(dns.server, patient, loopbackGuard)), DnsProviderError);
  });
});

test('the resolver of the system is queried if no name server is reachable', async () => {
  const { world, dns } = simulated({ isReachable: false });
  dns.add(name, 'wanted');
  const said = await wait(dns.resolver(), { world });
  assert.equal(said.length, 2, 'at the third look');
});

test('a challenge name that is a zone of its own is looked up at that zone’s servers', async () => {
  const { world, dns } = simulated();
  dns.zone(name, { lagsMs: [5000] });
  dns.add(name, 'wanted');
  const said = await wait(dns.resolver(), { world });
  assert.match(said[0] ?? '', /^ns0\.example\.test/);
  assert.match(said[1] ?? '', /^ns0\._acme-challenge\.www\.example\.test/);
});

test('100 records are polled together, without an address lookup for each record', async () => {
  const { world, dns } = simulated({ lagsMs: [0, 40_000] });
  const many = Array.from({ length: 100 }, (_, index) => ({
    name: `_acme-challenge.n${index}.example.test`,
    value: 'wanted',
  }));
  for (const { name: at } of many) dns.add(at, 'wanted');
  const begun = world.now();
  await waitUntilVisible({ world, resolver: dns.resolver() }, many, { timeoutMs: 600_000 }, never);
  assert(world.now() - begun < 60_000);
  const addresses = dns.questions?.filter(({ type }) => type === 'A') ?? [];
  assert(addresses.length < 20, `${addresses.length} questions for addresses`);
});

suite('timeout and cancellation', () => {
  test('the timeout error lists the record and the truncated values of each server', async (t) => {
    const many = Array.from({ length: 8 }, (_, index) => `${index}`.repeat(100));
    const [one, two] = [await fakeDns(t), await fakeDns(t, { [`TXT ${name}`]: many })];
    two.trouble = () => 'truncated';
    const { resolver } = await authoritative(t, { 'ns1.test': one, 'ns2.test': two });
    const world = new JumpingWorld();
    await assert.rejects(wait(resolver, { world, timeoutMs: 20_000 }), (error: Error) => {
      assert(error instanceof DnsProviderError);
      const values = many.slice(0, 5).map((value) => `"${value.slice(0, 80)}"`);
      assert.equal(
        error.message,
        `the TXT record "wanted" at ${name} is not visible after 20 s: ns1.test (192.0.2.1) has no TXT record; ns2.test (192.0.2.2) has ${values.join(', ')} and 3 more`,
      );
      return true;
    });
    assert.deepEqual(world.waits, [1000, 2000, 4000, 8000, 5000], 'the last look is at the very end');
  });

  test('a change of the system clock does not change the timeout', async (t) => {
    const dns = await fakeDns(t);
    for (const by of [-86_400_000, 86_400_000]) {
      const world = new JumpingWorld();
      const at = (pause: number) => pause === 2 && world.set(by);
      const resolver = systemResolver(dns.server, undefined, loopbackGuard);
      await assert.rejects(wait(resolver, { world, at, timeoutMs: 20_000 }), / is not visible after 20 s: /);
      assert.equal(world.elapsed(), 20_000);
    }
  });

  test('a timeout of zero polls once', async (t) => {
    const dns = await fakeDns(t, shows);
    assert.deepEqual(await wait(systemResolver(dns.server, undefined, loopbackGuard), { timeoutMs: 0 }), []);
    dns.records = {};
    await assert.rejects(
      wait(systemResolver(dns.server, undefined, loopbackGuard), { timeoutMs: 0 }),
      DnsProviderError,
    );
  });

  test('a canceled wait ends without another query', async (t) => {
    const dns = await fakeDns(t);
    const looks = () => dns.questions.filter(({ type }) => type === 'TXT').length;
    const stop = new AbortController();
    const onWaiting = () => stop.abort();
    const context = {
      world: new JumpingWorld(),
      resolver: systemResolver(dns.server, undefined, loopbackGuard),
    };
    const waiting = waitUntilVisible(context, [record], { timeoutMs: 60_000, onWaiting }, stop.signal);
    await assert.rejects(waiting, { message: `waiting for the TXT record at ${name} was canceled` });
    assert.equal(looks(), 1);
  });
});
