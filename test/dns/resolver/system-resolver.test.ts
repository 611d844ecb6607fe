/** The real resolver against name servers that answer, refuse, stammer or say nothing. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { systemResolver } from '../../../src/dns/resolver/system-resolver.ts';
import { type FakeTrouble, fakeDns } from '../../harness/dns/fake-dns.ts';
import { loopbackGuard } from '../../harness/loopback-guard.ts';
import { freePort } from '../../harness/processes/port.ts';

const hasty = { timeoutMs: 500, tries: 1 };

suite('queries', () => {
  test('strings of one TXT record are joined; several records are several values', async (t) => {
    const dns = await fakeDns(t, { 'TXT a.test': [['one ', 'and more'], 'two'] });
    const resolver = systemResolver(dns.server, undefined, loopbackGuard);
    assert.equal(resolver.configured, dns.server);
    assert.deepEqual((await resolver.txt('a.test')).sort(), ['one and more', 'two']);
  });

  test('a missing name or record type returns an empty result', async (t) => {
    const dns = await fakeDns(t, { 'TXT a.test': ['one'] });
    const resolver = systemResolver(dns.server, undefined, loopbackGuard);
    assert.deepEqual(await resolver.txt('b.test'), []);
    assert.equal(await resolver.cname('a.test'), undefined);
    assert.equal(await resolver.cname('b.test'), undefined);
    assert.deepEqual(await resolver.nameServers('a.test'), []);
    assert.deepEqual(await resolver.addresses('a.test'), []);
    assert.deepEqual(await resolver.addresses('b.test'), []);
  });

  test('only the specified server is queried', async (t) => {
    const [one, other] = [
      await fakeDns(t, { 'TXT a.test': ['one'] }),
      await fakeDns(t, { 'TXT a.test': ['other'] }),
    ];
    const resolver = systemResolver(one.server, undefined, loopbackGuard);
    assert.deepEqual(await resolver.txt('a.test', other.server), ['other']);
    assert.equal(one.questions.length, 0);
    assert.deepEqual(await resolver.txt('a.test'), ['one']);
  });

  test('responses are not cached', async (t) => {
    const dns = await fakeDns(t, { 'TXT a.test': ['old'] });
    const resolver = systemResolver(dns.server, undefined, loopbackGuard);
    assert.deepEqual(await resolver.txt('a.test'), ['old']);
    dns.records = { 'TXT a.test': ['new'] };
    assert.deepEqual(await resolver.txt('a.test'), ['new']);
    assert.equal(dns.questions.length, 2);
  });

  test('a response too large for UDP is fetched over TCP', async (t) => {
    const dns = await fakeDns(t, { 'TXT a.test': ['x'.repeat(250), 'y'.repeat(250)] });
    dns.trouble = () => 'truncated';
    assert.equal((await systemResolver(dns.server, undefined, loopbackGuard).txt('a.test')).length, 2);
    assert.deepEqual(
      dns.questions.map(({ over }) => over),
      ['udp', 'tcp'],
    );
  });

  test('addresses returns IPv4 and IPv6 addresses, and fails only if both queries fail', async (t) => {
    const dns = await fakeDns(t, { 'A ns.test': ['192.0.2.1'], 'AAAA ns.test': ['2001:db8::1'] });
    const resolver = systemResolver(dns.server, undefined, loopbackGuard);
    assert.deepEqual(await resolver.addresses('ns.test'), ['192.0.2.1', '2001:db8::1']);
    dns.trouble = ({ type }) => (type === 'AAAA' ? 'SERVFAIL' : undefined);
    assert.deepEqual(await resolver.addresses('ns.test'), ['192.0.2.1']);
    dns.trouble = () => 'SERVFAIL';
    await assert.rejects(
      resolver.addresses('ns.test'),
      /query for the A of ns.test failed: .* answered SERVFAIL/,
    );
  });

  test('nameServers does not return the name servers of a CNAME target', async (t) => {
    const dns = await fakeDns(t, {
      'NS example.test': ['ns1.example.test', 'ns2.example.test'],
      'CNAME www.example.test': ['cdn.test'],
      'NS cdn.test': ['ns.cdn.test'],
    });
    const resolver = systemResolver(dns.server, undefined, loopbackGuard);
    assert.deepEqual((await resolver.nameServers('example.test')).sort(), [
      'ns1.example.test',
      'ns2.example.test',
    ]);
    assert.deepEqual(await resolver.nameServers('www.example.test'), []);
    assert.equal(await resolver.cname('www.example.test'), 'cdn.test');
  });

  test('negativeTtl returns the SOA minimum in milliseconds, or 0 without an SOA record', async (t) => {
    const soa = { mname: 'ns.test', rname: 'hostmaster.test', minimum: 1800 };
    const dns = await fakeDns(t, { 'SOA example.test': [soa] });
    const resolver = systemResolver(dns.server, undefined, loopbackGuard);
    assert.equal(await resolver.negativeTtl('example.test'), 1_800_000);
    assert.equal(await resolver.negativeTtl('other.test'), 0);
  });

  test('CNAME and NS queries can be sent to one server directly', async (t) => {
    const dns = await fakeDns(t);
    const other = await fakeDns(t, {
      'CNAME a.test': ['b.test'],
      'NS example.test': ['ns.example.test'],
    });
    const resolver = systemResolver(dns.server, undefined, loopbackGuard);
    assert.equal(await resolver.cname('a.test', other.server), 'b.test');
    assert.deepEqual(await resolver.nameServers('example.test', other.server), ['ns.example.test']);
    assert.deepEqual(await resolver.nameServers('www.example.test', other.server), []);
    assert.equal(dns.questions.length, 0, 'the resolver is not asked');
  });
});

suite('an error is reported for', () => {
  const cases: readonly (readonly [FakeTrouble, RegExp])[] = [
    ['SERVFAIL', /^query for the TXT of a\.test failed: 127\.0\.0\.1:\d+ answered SERVFAIL$/],
    ['REFUSED', /^query for the TXT of a\.test failed: 127\.0\.0\.1:\d+ answered REFUSED$/],
    ['silence', /^query for the TXT of a\.test failed: 127\.0\.0\.1:\d+ did not answer$/],
    [
      'garbage',
      /^query for the TXT of a\.test failed: 127\.0\.0\.1:\d+ (did not answer|sent an unreadable answer)$/,
    ],
  ];
  for (const [trouble, words] of cases) {
    test(trouble, async (t) => {
      const dns = await fakeDns(t, { 'TXT a.test': ['one'] });
      dns.trouble = () => trouble;
      await assert.rejects(systemResolver(dns.server, hasty, loopbackGuard).txt('a.test'), (error: Error) => {
        assert(error instanceof DnsProviderError);
        assert.match(error.message, words);
        return true;
      });
    });
  }

  test('a refused connection', async () => {
    const server = `127.0.0.1:${await freePort()}`;
    await assert.rejects(systemResolver(server, hasty).txt('a.test'), {
      message: `query for the TXT of a.test failed: ${server} is unreachable`,
    });
  });

  test('a server that is not an address', async () => {
    await assert.rejects(systemResolver('nowhere').txt('a.test'), DnsProviderError);
  });
});
