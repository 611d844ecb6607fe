/** The provider cloudflare against a server that behaves as its API does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minute } from '../../../src/base/duration.ts';
import {
  bench,
  providerScenarios,
  record,
  refused,
  startFake,
} from '../../harness/dns/fake-provider-scenarios.ts';
import { fakeCloudflare } from './fake-cloudflare.ts';

providerScenarios(fakeCloudflare);

test('the active zone is used if several zones have the same name', async () => {
  await using fake = await startFake(fakeCloudflare);
  const { provider, signal } = bench(fakeCloudflare, fake);
  await provider.present(record, signal);
  const paths = fake.requests.map(({ path }) => path).filter((path) => path.includes('dns_records'));
  assert.deepEqual([...new Set(paths)], ['/client/v4/zones/id-example.com/dns_records']);
});

test('a rejected request to create a record is reported with the error of the API', async () => {
  await using fake = await startFake(fakeCloudflare);
  const { provider, signal } = bench(fakeCloudflare, fake);
  fake.interrupt(fakeCloudflare.error(400, 'DNS Validation Error'), ({ method }) => method === 'POST');
  const { message } = await refused(provider.present(record, signal));
  assert.match(message, /failed to create the TXT record .+ \(400: DNS Validation Error \[1000\]\)$/);
});

test('zones are requested once a minute, for any number of records', async () => {
  await using fake = await startFake(fakeCloudflare);
  const { provider, world, signal } = bench(fakeCloudflare, fake);
  const asked = () => fake.requests.filter(({ path }) => path === '/client/v4/zones').length;
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
