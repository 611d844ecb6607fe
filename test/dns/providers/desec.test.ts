/** The provider desec against a server that behaves as its API does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  another,
  bench,
  providerScenarios,
  record,
  refused,
  startFake,
} from '../../harness/dns/fake-provider-scenarios.ts';
import { fakeDesec } from './fake-desec.ts';

providerScenarios(fakeDesec);

test('a new record set has the minimum TTL of the domain, and removing the last value empties it', async () => {
  await using fake = await startFake(fakeDesec);
  const { provider, signal } = bench(fakeDesec, fake);
  fake.interrupt({ status: 200, json: [{ name: 'example.com', minimum_ttl: 4000 }] });
  await provider.present(record, signal);
  await provider.present(another, signal);
  await provider.remove(record, signal);
  await provider.remove(another, signal);
  const sent = fake.requests
    .filter(({ body }) => body !== '')
    .map(({ method, body }) => [method, JSON.parse(body)]);
  const [one, two] = [`"${record.value}"`, `"${another.value}"`];
  assert.deepEqual(sent, [
    ['POST', { subname: '_acme-challenge.www', type: 'TXT', ttl: 4000, records: [one] }],
    ['PATCH', { records: [one, two] }],
    ['PATCH', { records: [two] }],
    ['PATCH', { records: [] }],
  ]);
});

test('an error about a field is included in the message', async () => {
  await using fake = await startFake(fakeDesec);
  const { provider, signal } = bench(fakeDesec, fake);
  const json = { records: ['Record content malformed.'] };
  fake.interrupt({ status: 400, json }, ({ method }) => method === 'POST');
  const { message } = await refused(provider.present(record, signal));
  assert.match(message, /failed to create the TXT record .+ \(400: Record content malformed\.\)$/);
});
