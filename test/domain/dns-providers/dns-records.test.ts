/** Which provider a name belongs to, and how changes through one provider take turns. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { day, minute } from '../../../src/base/duration.ts';
import { KeyedMutex } from '../../../src/base/keyed-mutex.ts';
import type { World } from '../../../src/base/world.ts';
import { insertChallenge } from '../../../src/db/tables/issuance/acme-challenges.ts';
import { findDnsProvider } from '../../../src/db/tables/issuance/dns-providers.ts';
import { type DnsProvider, DnsProviderError, type TxtRecord } from '../../../src/dns/dns-provider.ts';
import {
  OperationTimeout,
  placeOf,
  presentRecords,
  providerType,
} from '../../../src/domain/dns-providers/dns-records.ts';
import { OpenedDnsProviders } from '../../../src/domain/dns-providers/opened-dns-providers.ts';
import { removeChallenges } from '../../../src/domain/orders/challenge-removal.ts';
import { addMemoryProvider, engine, memoryZone } from '../../harness/issuance/engine-vault.ts';
import { forever, until } from '../../harness/issuance/renewal-fixtures.ts';
import { TestWorld } from '../../harness/test-world.ts';

test('a name belongs to the provider with the longest matching zone after following CNAMEs', async (t) => {
  const { vault, zone } = await engine(t, { certificate: null });
  assert.equal(await placeOf(vault, 'www.example.test', forever), undefined);
  await addMemoryProvider(vault, zone, 'short', 'example.test', 'other.test');
  await addMemoryProvider(vault, zone, 'long', 'sub.example.test');
  zone.aliases.set('_acme-challenge.alias.nowhere.test', 'x.other.test');
  zone.aliases.set('_acme-challenge.lost.example.test', 'x.nowhere.test');
  const found = async (domain: string) => {
    const place = await placeOf(vault, domain, forever);
    return place && [place.provider.name, place.name, place.zone];
  };
  assert.deepEqual(await found('example.test'), ['short', '_acme-challenge.example.test', 'example.test']);
  assert.deepEqual(await found('a.sub.example.test'), [
    ...['long', '_acme-challenge.a.sub.example.test', 'sub.example.test'],
  ]);
  assert.deepEqual(await found('alias.nowhere.test'), ['short', 'x.other.test', 'other.test']);
  assert.equal(await found('lost.example.test'), undefined);
  assert.equal(await found('xexample.test'), undefined);
});

test('a CNAME loop is rejected with an error that lists its names', async (t) => {
  const { vault, zone } = await engine(t, { certificate: null, zones: ['example.test'] });
  zone.aliases.set('_acme-challenge.example.test', 'a.test');
  zone.aliases.set('a.test', '_acme-challenge.example.test');
  await assert.rejects(placeOf(vault, 'example.test', forever), {
    message:
      'the CNAME records form a loop: _acme-challenge.example.test → a.test → _acme-challenge.example.test',
  });
});

type Step = readonly [what: string, name: string];

/** A provider that notes how many of its operations are under way, in all and at each name. */
function watchedProvider(world: World, more: Partial<DnsProvider> = {}) {
  const seen: Step[] = [];
  const under = new Map<string, number>();
  const most = { inAll: 0, atOneName: 0 };
  const operate = (what: string) => async (record: TxtRecord) => {
    const { name } = record;
    under.set(name, (under.get(name) ?? 0) + 1);
    most.inAll = Math.max(
      most.inAll,
      [...under.values()].reduce((sum, count) => sum + count),
    );
    most.atOneName = Math.max(most.atOneName, under.get(name) ?? 0);
    await world.turn();
    under.set(name, (under.get(name) ?? 0) - 1);
    seen.push([what, name]);
    if (record.value === 'fails') throw new DnsProviderError('no');
  };
  const provider: DnsProvider = { present: operate('present'), remove: operate('remove'), ...more };
  return { provider, seen, most };
}

const at = (name: string, value = 'v') => ({ name, value, zone: 'example.test', domain: 'x' });

async function withProvider(t: TestContext, more: (world: World) => Partial<DnsProvider> = () => ({})) {
  const { vault, world } = await engine(t, { certificate: null, world: new TestWorld() });
  await addMemoryProvider(vault, memoryZone(), 'mine', 'example.test');
  const row = await findDnsProvider(vault.db.reader, 'mine');
  assert(row);
  const watched = watchedProvider(vault.world, more(world));
  const own = { ...vault, dns: new OpenedDnsProviders(vault.dns.context) };
  await own.dns.get(row, async () => watched.provider);
  return { vault: own, world, row, ...watched };
}

test('changes run for four names concurrently, but one at a time per name', async (t) => {
  const { vault, row, seen, most } = await withProvider(t);
  const names = Array.from({ length: 12 }, (_, index) => at(`n${index}.example.test`));
  await Promise.all([
    presentRecords(vault, row, [...names, ...names.map(({ name }) => at(name, 'w'))], forever),
    presentRecords(vault, row, names, forever),
  ]);
  assert.equal(seen.length, 36);
  assert.deepEqual(most, { inAll: 4, atOneName: 1 });
});

test('the concurrency of a provider limits concurrent changes', async (t) => {
  const { vault, row, most } = await withProvider(t, () => ({ concurrency: 1 }));
  await presentRecords(vault, row, [at('a.example.test'), at('b.example.test')], forever);
  assert.deepEqual(most, { inAll: 1, atOneName: 1 });
});

test('a failed change rejects its call and skips its remaining records, and other calls proceed', async (t) => {
  const { vault, row, seen } = await withProvider(t, () => ({ concurrency: 1 }));
  const [failing, other] = await Promise.allSettled([
    presentRecords(vault, row, [at('a.example.test', 'fails'), at('b.example.test')], forever),
    presentRecords(vault, row, [at('c.example.test')], forever),
  ]);
  assert.equal(failing?.status, 'rejected');
  assert.equal(other?.status, 'fulfilled');
  assert.deepEqual(
    seen.map(([, name]) => name),
    ['a.example.test', 'c.example.test'],
  );
});

test('an aborted signal ends the wait for a turn, and the error includes the provider name', async (t) => {
  const { vault, row, world } = await withProvider(t, (world) => ({
    present: async (_, signal) => world.sleep(minute, signal),
    concurrency: 1,
  }));
  const stop = new AbortController();
  const first = presentRecords(vault, row, [at('a.example.test')], forever);
  const second = presentRecords(vault, row, [at('b.example.test')], stop.signal);
  await world.sleeping(2);
  stop.abort();
  await assert.rejects(second, {
    name: 'DnsProviderError',
    message: 'canceled while waiting for DNS provider mine',
  });
  world.advance(minute);
  await first;
});

test('the timeout of an operation starts with its turn, and the error states it in seconds', async (t) => {
  let begun = 0;
  const { vault, row, world } = await withProvider(t, (world) => ({
    present: async ({ value }, signal) => {
      begun += 1;
      await world.sleep(value === 'silent' ? day : 90_000, signal);
      if (signal.aborted) throw new DnsProviderError('the request was canceled');
    },
    concurrency: 1,
  }));
  const passes = async (ms: number, operations: number) => {
    await until(vault, () => begun === operations && world.asleep === 2);
    world.advance(ms);
  };
  const waiting = [0, 1, 2].map((n) => presentRecords(vault, row, [at(`n${n}.example.test`)], forever));
  for (const n of [1, 2, 3]) await passes(90_000, n);
  await Promise.all(waiting);
  const silent = presentRecords(vault, row, [at('x.example.test', 'silent')], forever);
  silent.catch(() => {
    // It is looked at below.
  });
  await passes(2 * minute, 4);
  await assert.rejects(silent, OperationTimeout);
  await assert.rejects(silent, { message: 'DNS provider mine did not change x.example.test within 120 s' });
});

test('records are sent in batches of up to 50, and settling does not block other changes', async (t) => {
  const batches: number[] = [];
  const settling = Promise.withResolvers<void>();
  const { vault, row, seen } = await withProvider(t, () => ({
    batch: {
      present: async (records) => void batches.push(records.length),
      remove: async () => undefined,
    },
    settle: async (records) => (records.length > 1 ? settling.promise : undefined),
  }));
  const many = Array.from({ length: 120 }, (_, index) => at(`n${index}.example.test`));
  const first = presentRecords(vault, row, many, forever);
  await presentRecords(vault, row, [at('x.example.test')], forever);
  settling.resolve();
  await first;
  assert.deepEqual(
    batches.toSorted((a, b) => a - b),
    [1, 20, 50, 50],
  );
  assert.deepEqual(seen, []);
});

/** Says how many turns were asked for. */
class CountedTurns extends KeyedMutex {
  asked = 0;
  override take<T>(...request: Parameters<typeof KeyedMutex.prototype.take<T>>): Promise<T> {
    this.asked += 1;
    return super.take(...request);
  }
}

for (const fails of [false, true]) {
  const outcome = fails ? 'unless a removal has failed' : 'if no removal has failed';
  test(`removals that began 20 minutes ago run before queued records, ${outcome}`, async (t) => {
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    const { vault, row, world } = await withProvider(t, () => ({
      ...{ concurrency: 1, limitsItself: true },
      present: async ({ name }) => {
        await gate.promise;
        seen.push(`present ${name}`);
      },
      remove: async ({ name }) => {
        seen.push(`remove ${name}`);
        if (fails && seen.filter((step) => step.startsWith('remove')).length === 1) {
          throw new DnsProviderError('no');
        }
      },
    }));
    const turns = new CountedTurns();
    const own = { ...vault, turns };
    const rows = await vault.db.write((writer) =>
      Promise.all(
        ['x', 'y'].map((name) =>
          insertChallenge(writer, {
            ...{ renewal_id: null, identifier: name, type: 'dns-01', token: name, key_authorization: name },
            ...{ dns_provider_id: row.id, record_name: name, record_zone: 'example.test' },
            ...{ record_value: 'value', created_at: world.now() },
          }),
        ),
      ),
    );
    const present = async (...names: string[]) => {
      const before = turns.asked;
      const work = names.map((name) => presentRecords(own, row, [at(name)], forever));
      await until(vault, () => turns.asked === before + 2 * names.length);
      return work;
    };
    const work = await present('a', 'b');
    work.push(removeChallenges(own, rows));
    await until(vault, () => turns.asked === 6);
    world.advance(20 * minute);
    work.push(...(await present('c', 'd', 'e')));
    gate.resolve();
    await Promise.all(work);
    // The next waiter has its turn before the second removal can ask for one.
    const rest = fails
      ? ['present c', 'present d', 'present e', 'remove x', 'remove y']
      : ['present c', 'remove y', 'present d', 'present e'];
    assert.deepEqual(seen, ['present a', 'present b', 'remove x', ...rest]);
  });
}

test('an unknown provider type is rejected with the closest known type as a hint', () => {
  assert.equal(providerType('rfc2136').type, 'rfc2136');
  assert.throws(() => providerType('rfc2163'), { hint: /rfc2136/ });
});
