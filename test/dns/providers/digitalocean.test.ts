/** The provider digitalocean against a server that behaves as its API does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bench,
  here,
  providerScenarios,
  record,
  refused,
  startFake,
} from '../../harness/dns/fake-provider-scenarios.ts';
import { fakeDigitalocean } from './fake-digitalocean.ts';

providerScenarios(fakeDigitalocean);

test('a next page on another host is not requested', async () => {
  await using fake = await startFake(fakeDigitalocean);
  const { provider, signal } = bench(fakeDigitalocean, fake);
  const next = 'https://evil.example/v2/domains?page=2';
  fake.interrupt({ status: 200, json: { domains: [], links: { pages: { next } } } });
  const { message } = await refused(provider.present(record, signal));
  assert.match(message, /on another host, evil\.example; no request was sent/);
});

test('listing domains ends if the pages form a loop', async () => {
  await using fake = await startFake(fakeDigitalocean);
  const { provider, signal } = bench(fakeDigitalocean, fake);
  const next = `${fake.url}/v2/domains?page=1&again`;
  const circle = { status: 200, json: { domains: [{ name: 'example.com' }], links: { pages: { next } } } };
  fake.interrupt(circle);
  fake.interrupt(circle);
  await provider.present(record, signal);
  assert.deepEqual(fake.values(here), [record.value]);
});
