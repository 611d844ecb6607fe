/** The provider cloudflare against a server that behaves as its API does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeCloudflare } from '../../harness/fake-provider-cloudflare.ts';
import {
  bench,
  providerScenarios,
  record,
  refused,
  startFake,
} from '../../harness/fake-provider-scenarios.ts';

providerScenarios(fakeCloudflare);

test('of zones with one name the active one is taken', async () => {
  await using fake = await startFake(fakeCloudflare);
  const { provider, signal } = bench(fakeCloudflare, fake);
  await provider.present(record, signal);
  const paths = fake.requests.map(({ path }) => path).filter((path) => path.includes('dns_records'));
  assert.deepEqual([...new Set(paths)], ['/client/v4/zones/id-example.com/dns_records']);
});

test('a refusal to create is an error unless it says that the record exists', async () => {
  await using fake = await startFake(fakeCloudflare);
  const { provider, signal } = bench(fakeCloudflare, fake);
  fake.interrupt(fakeCloudflare.error(400, 'DNS Validation Error'), ({ method }) => method === 'POST');
  const { message } = await refused(provider.present(record, signal));
  assert.match(message, /failed to create the TXT record .+ \(400: DNS Validation Error \[1000\]\)$/);
});
