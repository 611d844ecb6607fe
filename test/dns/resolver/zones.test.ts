/** Where a validation's record goes: longest zone, challenge name, CNAME records to the end. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import type { DnsResolver } from '../../../src/dns/resolver/dns-resolver.ts';
import { systemResolver } from '../../../src/dns/resolver/system-resolver.ts';
import { ZoneServers } from '../../../src/dns/resolver/zone-servers.ts';
import { challengeName, followCnames, longestZone } from '../../../src/dns/resolver/zones.ts';
import { fakeDns } from '../../harness/dns/fake-dns.ts';
import { loopbackGuard } from '../../harness/loopback-guard.ts';

const never = new AbortController().signal;

suite('longestZone', () => {
  const wide = { title: 'wide', zones: ['example.com', 'example.net'] };
  const narrow = { title: 'narrow', zones: ['Sub.Example.COM.'] };
  const cases: readonly (readonly [name: string, title: string | undefined, zone?: string])[] = [
    ['www.example.com', 'wide', 'example.com'],
    ['example.com', 'wide', 'example.com'],
    ['EXAMPLE.net.', 'wide', 'example.net'],
    ['a.sub.example.com', 'narrow', 'sub.example.com'],
    ['sub.example.com', 'narrow', 'sub.example.com'],
    ['badsub.example.com', 'wide', 'example.com'],
    ['badexample.com', undefined],
    ['com', undefined],
  ];
  for (const [name, title, zone] of cases) {
    test(`assigns ${name} to ${title ?? 'no provider'}`, () => {
      for (const providers of [
        [wide, narrow],
        [narrow, wide],
      ]) {
        const found = longestZone(name, providers);
        assert.equal(found?.provider.title, title);
        assert.equal(found?.zone, zone);
      }
    });
  }

  test('returns the first of two providers with the same zone, and ignores empty zones', () => {
    const other = { title: 'other', zones: ['example.com', '', '.'] };
    assert.equal(longestZone('example.com', [wide, other])?.provider, wide);
    assert.equal(longestZone('example.org', [wide, other]), undefined);
  });
});

test('challengeName of a wildcard equals that of its base domain', () => {
  assert.equal(challengeName('*.Example.com.'), '_acme-challenge.example.com');
  assert.equal(challengeName('example.com'), '_acme-challenge.example.com');
});

/** No name servers at all: the resolver is asked for aliases. */
function knowing(cname: DnsResolver['cname']): ZoneServers {
  const none = async () => [];
  return new ZoneServers({
    ...{ cname, txt: none, nameServers: none, addresses: none },
    negativeTtl: async () => 0,
    configured: undefined,
  });
}

suite('followCnames', () => {
  const start = '_acme-challenge.www.example.test';

  test('returns the last name of a CNAME chain, whether or not it exists', async (t) => {
    const dns = await fakeDns(t, {
      [`CNAME ${start}`]: ['a.delegated.test'],
      'CNAME a.delegated.test': ['B.acme.test'],
    });
    const resolver = new ZoneServers(systemResolver(dns.server, undefined, loopbackGuard));
    assert.equal(await followCnames(resolver, `${start}.`, never), 'b.acme.test');
    dns.records = { ...dns.records, 'TXT b.acme.test': ['one'] };
    assert.equal(await followCnames(resolver, start, never), 'b.acme.test');
    assert.equal(await followCnames(resolver, 'nothing.test', never), 'nothing.test');
  });

  test('a CNAME loop is reported with its names', async (t) => {
    const dns = await fakeDns(t, {
      [`CNAME ${start}`]: ['a.test'],
      'CNAME a.test': [start],
    });
    // A resolver that follows circles itself would not end either; the fake one answers the first only.
    const resolver = knowing(async (name) => dns.records[`CNAME ${name}`]?.[0] as string | undefined);
    await assert.rejects(followCnames(resolver, start, never), (error: Error) => {
      assert(error instanceof DnsProviderError);
      assert.equal(error.message, `the CNAME records form a loop: ${start} → a.test → ${start}`);
      return true;
    });
  });

  test('follows 10 chained CNAME records and rejects 11', async () => {
    const chain = (length: number) =>
      knowing(async (name) => {
        const at = Number(name.slice(1));
        return at < length ? `n${at + 1}` : undefined;
      });
    assert.equal(await followCnames(chain(10), 'n0', never), 'n10');
    await assert.rejects(
      followCnames(chain(11), 'n0', never),
      /more than 10 chained CNAME records: n0 → n1 /,
    );
  });

  test('reports the server and the query if the server responds with SERVFAIL', async (t) => {
    const dns = await fakeDns(t);
    dns.trouble = () => 'SERVFAIL';
    await assert.rejects(
      followCnames(new ZoneServers(systemResolver(dns.server, undefined, loopbackGuard)), start, never),
      {
        name: 'DnsProviderError',
        message: `failed to look up the CNAME of ${start}: query for the NS of www.example.test failed: ${dns.server} answered SERVFAIL`,
      },
    );
  });

  test('stops if it is canceled before or between queries', async () => {
    const stop = new AbortController();
    const resolver = knowing(async () => {
      stop.abort();
      return 'elsewhere.test';
    });
    await assert.rejects(
      followCnames(resolver, start, stop.signal),
      /looking up elsewhere.test was canceled/,
    );
    await assert.rejects(
      followCnames(resolver, start, stop.signal),
      new RegExp(`looking up ${start} was canceled`),
    );
  });

  test('queries the name servers directly and skips a name whose NS query fails', async (t) => {
    const dns = await fakeDns(t, {
      'NS example.test': ['ns.test'],
      'A ns.test': ['127.0.0.1'],
      [`CNAME ${start}`]: ['a.delegated.test'],
    });
    dns.trouble = ({ type, name }) => (type === 'NS' && name === 'www.example.test' ? 'SERVFAIL' : undefined);
    const servers = new ZoneServers(
      systemResolver(dns.server, { timeoutMs: 20_000, tries: 1 }, loopbackGuard),
    );
    assert.equal(await followCnames(servers, start, never), 'a.delegated.test');
    const { zone, isUnsure } = await servers.above(start);
    assert.deepEqual([zone, isUnsure], ['example.test', true]);
  });
});
