/** Which provider a name belongs to, and that changes through one provider go one after the other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findDnsProvider } from '../../src/db/dns-providers.ts';
import type { TxtRecord } from '../../src/dns/dns-provider.ts';
import { placeOf, providerType, putUp, takeDown } from '../../src/domain/dns-records.ts';
import { addMemoryProvider, engine } from '../harness/engine-vault.ts';
import { forever } from '../harness/renewal-fixtures.ts';

test('a name belongs to the provider with the longest zone that it is in, after its aliases were followed', async (t) => {
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

test('aliases in a circle are refused in words that show them', async (t) => {
  const { vault, zone } = await engine(t, { certificate: null, zones: ['example.test'] });
  zone.aliases.set('_acme-challenge.example.test', 'a.test');
  zone.aliases.set('a.test', '_acme-challenge.example.test');
  await assert.rejects(placeOf(vault, 'example.test', forever), {
    message:
      'the CNAME records lead in a circle: _acme-challenge.example.test → a.test → _acme-challenge.example.test',
  });
});

test('changes through a provider go one after the other, also when one of them fails', async (t) => {
  const { vault, zone } = await engine(t, { certificate: null, zones: ['example.test'] });
  const row = await findDnsProvider(vault.db.reader, 'memory');
  assert(row);
  let under = 0;
  let most = 0;
  const slow = async (record: TxtRecord) => {
    under += 1;
    most = Math.max(most, under);
    await vault.world.turn();
    under -= 1;
    if (record.value === '2') throw new Error('no');
  };
  t.mock.method(zone.provider, 'present', slow);
  t.mock.method(zone.provider, 'remove', slow);
  const record = (value: string) => ({ name: 'x.example.test', value, zone: 'example.test', domain: 'x' });
  const outcomes = await Promise.allSettled([
    putUp(vault, row, record('1'), forever),
    putUp(vault, row, record('2'), forever),
    takeDown(vault, row, record('1'), forever),
  ]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.equal(most, 1);
});

test('a kind of provider that does not exist is refused with the closest that does', () => {
  assert.equal(providerType('rfc2136').type, 'rfc2136');
  assert.throws(() => providerType('rfc2163'), { hint: /rfc2136/ });
});
