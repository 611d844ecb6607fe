/** The provider azure-dns against a server that behaves as its API does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minute } from '../../../src/base/duration.ts';
import {
  another,
  bench,
  here,
  providerScenarios,
  record,
  refused,
  startFake,
} from '../../harness/dns/fake-provider-scenarios.ts';
import { azureTokens, fakeAzureDns } from './fake-azure-dns.ts';

providerScenarios(fakeAzureDns);

const isChange = ({ method }: { method: string }) => method === 'PUT' || method === 'DELETE';

test('every change sends If-Match or If-None-Match, and concurrent changes are preserved', async () => {
  await using fake = await startFake(fakeAzureDns);
  const { provider, signal } = bench(fakeAzureDns, fake);
  await provider.present(record, signal);
  fake.meanwhile(() => fake.add(here, 'another-clients'));
  await provider.present(another, signal);
  assert.deepEqual(fake.values(here), [record.value, 'another-clients', another.value]);
  fake.meanwhile(() => fake.add(here, 'a-third'));
  await provider.remove(record, signal);
  assert.deepEqual(fake.values(here), ['another-clients', another.value, 'a-third']);
  const changes = fake.requests.filter(isChange);
  assert.deepEqual(
    changes.map(({ headers }) => [headers['if-none-match'], headers['if-match'] !== undefined]),
    [['*', false], ...Array.from({ length: 4 }, () => [undefined, true])],
  );
});

test('removing the last value deletes the record set', async () => {
  await using fake = await startFake(fakeAzureDns);
  const { provider, signal } = bench(fakeAzureDns, fake);
  await provider.present(record, signal);
  await provider.remove(record, signal);
  assert.equal(fake.requests.filter(isChange).at(-1)?.method, 'DELETE');
});

test('a token is reused until it expires, and replaced if it is rejected', async () => {
  await using fake = await startFake(fakeAzureDns);
  const { provider, world, signal } = bench(fakeAzureDns, fake);
  const logins = () => fake.requests.filter(({ path }) => path.endsWith('/oauth2/v2.0/token')).length;
  await provider.present(record, signal);
  await provider.remove(record, signal);
  assert.equal(logins(), 1);
  world.advance(3_540_000);
  await provider.present(record, signal);
  assert.equal(logins(), 2);
  azureTokens.clear();
  await provider.remove(record, signal);
  assert.equal(logins(), 3);
});

test('zone_name is used without listing zones, and rejects a record outside the zone', async () => {
  await using fake = await startFake(fakeAzureDns);
  const { made, signal } = bench(fakeAzureDns, fake);
  const provider = made({ ...fakeAzureDns.config(fake.url), zone_name: 'Example.com' });
  await provider.present(record, signal);
  assert.deepEqual(fake.values(here), [record.value]);
  assert(fake.requests.every(({ path }) => !path.endsWith('/dnsZones')));
  const elsewhere = { ...record, name: '_acme-challenge.example.org', zone: 'example.org' };
  assert.match((await refused(provider.present(elsewhere, signal))).message, /has no zone .*zone_name/);
});

test('a next page on another host is not requested', async () => {
  await using fake = await startFake(fakeAzureDns);
  const { provider, signal } = bench(fakeAzureDns, fake);
  const nextLink = 'https://evil.example/subscriptions';
  fake.interrupt({ status: 200, json: { value: [], nextLink } }, ({ path }) => path.endsWith('/dnsZones'));
  assert.match((await refused(provider.present(record, signal))).message, /on another host, evil\.example/);
});

test('a client secret that Azure rejects is reported as a login error and not shown', async () => {
  await using fake = await startFake(fakeAzureDns);
  const { made, signal } = bench(fakeAzureDns, fake);
  const { message } = await refused(made(fakeAzureDns.wrong(fake.url)).present(record, signal));
  assert.match(
    message,
    /^The Azure login refused to issue a token \(401: AADSTS7000215: .*\[secret\] \[invalid_client\]\)/,
  );
});

test('zones are requested once a minute, for any number of records', async () => {
  await using fake = await startFake(fakeAzureDns);
  const { provider, world, signal } = bench(fakeAzureDns, fake);
  const asked = () => fake.requests.filter(({ path }) => path.endsWith('/dnsZones')).length;
  await provider.present(record, signal);
  const first = asked();
  assert(first > 0);
  await provider.present({ ...record, value: 'another' }, signal);
  await provider.remove(record, signal);
  assert.equal(asked(), first);
  world.advance(minute);
  await provider.remove({ ...record, value: 'another' }, signal);
  assert.equal(asked(), 2 * first);
});
