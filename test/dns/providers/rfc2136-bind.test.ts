/** Dynamic updates at a real BIND: it takes our signatures, and refuses what it should in words that help. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { realWorld, type World } from '../../../src/base/world.ts';
import { rfc2136 } from '../../../src/dns/providers/rfc2136.ts';
import { waitUntilVisible } from '../../../src/dns/resolver/propagation.ts';
import { systemResolver } from '../../../src/dns/resolver/system-resolver.ts';
import { ZoneServers } from '../../../src/dns/resolver/zone-servers.ts';
import { followCnames } from '../../../src/dns/resolver/zones.ts';
import { type Bind, bind, needsBind, type TsigAlgorithm } from '../../harness/dns/bind.ts';
import { fakeContext } from '../../harness/dns/fake-provider.ts';
import { loopbackGuard } from '../../harness/loopback-guard.ts';

const never = new AbortController().signal;
const zone = 'example.test';
const name = `_acme-challenge.www.${zone}`;
const recordOf = (value: string, at = name) => ({ name: at, value, zone, domain: 'www.example.test' });

function providerFor(server: Bind, more: Readonly<Record<string, unknown>> = {}, world: World = realWorld) {
  const { server: address, keyName, algorithm, secret } = server;
  const config = rfc2136.config.parse({ server: address, key_name: keyName, algorithm, secret, ...more });
  return rfc2136.create(config, { ...fakeContext(), world, log: silentLog });
}

suite('a real BIND', needsBind(), () => {
  test('holds several values at a name, which can be added and removed individually and repeatedly', async (t) => {
    const server = await bind(t, { zones: [zone] });
    const provider = providerFor(server);
    for (const value of ['one', 'two', 'one']) await provider.present(recordOf(value), never);
    assert.deepEqual(await server.txt(name), ['one', 'two']);
    await provider.remove(recordOf('one'), never);
    assert.deepEqual(await server.txt(name), ['two']);
    for (const value of ['one', 'two']) await provider.remove(recordOf(value), never);
    assert.deepEqual(await server.txt(name), []);
  });

  test('accepts 20 concurrent values at a name, and a long value at the apex of a zone', async (t) => {
    const server = await bind(t, { zones: [zone, `sub.${zone}`] });
    const provider = providerFor(server);
    const values = Array.from({ length: 20 }, (_, index) => `value-${String(index).padStart(2, '0')}`);
    await Promise.all(values.map((value) => provider.present(recordOf(value), never)));
    assert.deepEqual(await server.txt(name), values);
    const long = 'x'.repeat(600);
    await provider.present(recordOf(long, `sub.${zone}`), never);
    assert.deepEqual(await server.txt(`sub.${zone}`), [long], 'in the zone that the server names');
  });

  test('shows a record through a CNAME into another zone, in which it is created', async (t) => {
    const alias = `_acme-challenge.www CNAME www.acme.test.`;
    const server = await bind(t, { zones: [{ name: zone, records: [alias] }, 'acme.test'] });
    const resolver = systemResolver(server.server, undefined, loopbackGuard);
    const target = await followCnames(new ZoneServers(resolver), name, never);
    assert.equal(target, 'www.acme.test');
    const record = { ...recordOf('one', target), zone: 'acme.test' };
    const look = () => waitUntilVisible({ world: realWorld, resolver }, [record], { timeoutMs: 0 }, never);
    await assert.rejects(look(), /has no TXT record/);
    await providerFor(server).present(record, never);
    await look();
    assert.deepEqual(await server.txt(name), ['one']);
    await providerFor(server).remove(record, never);
    await assert.rejects(look(), /has no TXT record/);
  });

  test('accepts a batch of 101 records in two zones, and the removal of 100 of them', async (t) => {
    const server = await bind(t, { zones: [zone, `sub.${zone}`] });
    const provider = providerFor(server);
    const records = Array.from({ length: 50 }, (_, index) => [
      recordOf('one', `_acme-challenge.n${index}.${zone}`),
      recordOf('two', `_acme-challenge.n${index}.sub.${zone}`),
    ]).flat();
    await provider.batch?.present([...records, recordOf('three', records[0]?.name)], never);
    const shown = async () => Promise.all(records.map(async ({ name: at }) => (await server.txt(at)).length));
    assert.equal(
      (await shown()).reduce((sum, count) => sum + count),
      101,
    );
    await provider.batch?.remove(records, never);
    assert.deepEqual(await server.txt(records[0]?.name ?? ''), ['three']);
    assert.equal(
      (await shown()).reduce((sum, count) => sum + count),
      1,
    );
  });

  test('a secondary that lags behind is waited for', async (t) => {
    const server = await bind(t, { zones: [zone], secondary: true });
    const second = server.secondary ?? '';
    const real = systemResolver(server.server, undefined, loopbackGuard);
    // The servers of a zone are at port 53 everywhere else.
    const own = (at?: string) => (at === '127.0.0.2:53' ? second : at);
    const resolver = {
      ...real,
      txt: (asked: string, at?: string) => real.txt(asked, own(at)),
      nameServers: (asked: string, at?: string) => real.nameServers(asked, own(at)),
    };
    assert.deepEqual((await real.nameServers(zone)).toSorted(), [`ns.${zone}`, `ns2.${zone}`]);
    await providerFor(server).present(recordOf('one'), never);
    assert.deepEqual(await real.txt(name, second), [], 'it has not asked for the change yet');
    const states: string[] = [];
    const wait = { timeoutMs: 60_000, onWaiting: (state: string) => void states.push(state) };
    await waitUntilVisible({ world: realWorld, resolver }, [recordOf('one')], wait, never);
    assert.equal(states[0], `ns2.${zone} (127.0.0.2) has no TXT record; 1 of 2 servers have it`);
    assert.deepEqual(await real.txt(name, second), ['one']);
  });

  test('returns the name servers of a zone in a referral', async (t) => {
    const referral = ['_acme-challenge.www NS ns.elsewhere.test.'];
    const server = await bind(t, { zones: [{ name: zone, records: referral }] });
    const resolver = systemResolver(server.server, undefined, loopbackGuard);
    assert.deepEqual(await resolver.nameServers(name, server.server), ['ns.elsewhere.test']);
    assert.deepEqual(await resolver.nameServers(`www.${zone}`, server.server), []);
  });

  for (const algorithm of ['hmac-sha1', 'hmac-sha224', 'hmac-sha384', 'hmac-sha512'] as TsigAlgorithm[]) {
    test(`accepts ${algorithm}`, async (t) => {
      const server = await bind(t, { zones: [zone], algorithm });
      await providerFor(server).present(recordOf('one'), never);
      assert.deepEqual(await server.txt(name), ['one']);
    });
  }

  test('rejects updates with a wrong key, time or zone, and the error explains the cause', async (t) => {
    const server = await bind(t, { zones: [zone] });
    const hourAhead = { ...realWorld, now: () => Date.now() + 3_600_000 };
    const cases: readonly (readonly [string, ReturnType<typeof providerFor>, RegExp])[] = [
      ['another secret', providerFor(server, { secret: 'c2VjcmV0' }), /answered BADSIG: wrong TSIG secret/],
      ['another key', providerFor(server, { key_name: 'other' }), /answered BADKEY: unknown TSIG key/],
      ['another algorithm', providerFor(server, { algorithm: 'hmac-sha512' }), /answered BADKEY/],
      [
        'another time',
        providerFor(server, {}, hourAhead),
        /BADTIME: the clock of the server is 36\d\d s behind the vault's/,
      ],
      ['another zone', providerFor(server, { zone: 'other.test' }), /answered NOTAUTH: not the primary/],
      [
        'no key',
        providerFor(server, { key_name: undefined, secret: undefined, unsigned: true }),
        /answered REFUSED/,
      ],
    ];
    for (const [what, provider, words] of cases) {
      await assert.rejects(provider.present(recordOf('one'), never), words, what);
    }
    const narrow = providerFor(server, { zone });
    await assert.rejects(narrow.present(recordOf('one', 'a.elsewhere.test'), never), /answered NOTZONE/);
    assert.deepEqual(await server.txt(name), []);
  });
});
