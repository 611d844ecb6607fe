/** The provider ovh against a server that behaves as its API does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ovhSignature } from '../../../src/dns/providers/ovh.ts';
import {
  bench,
  here,
  providerScenarios,
  record,
  refused,
  startFake,
} from '../../harness/dns/fake-provider-scenarios.ts';
import { fakeOvh, ovhTime } from './fake-ovh.ts';

providerScenarios(fakeOvh);

test("ovhSignature returns the signature of OVH's own example", () => {
  const keys = {
    applicationSecret: 'EXEgWIz07P0HYwtQDs7cNIqCiQaWSuHF',
    consumerKey: 'MtSwSrPpNjqfVSmJhLbPyr2i45lSwPU1',
  };
  const request = { method: 'GET', url: 'https://eu.api.ovh.com/1.0/domains/' } as const;
  assert.equal(ovhSignature(keys, request, 1366560945), '$1$d3705e8afb27a0d2970a322b96550abfc67bb798');
});

test("OVH's time is requested once an hour", async () => {
  await using fake = await startFake(fakeOvh);
  const { provider, world, signal } = bench(fakeOvh, fake);
  const asked = () => fake.requests.filter(({ path }) => path === '/1.0/auth/time').length;
  await provider.present(record, signal);
  await provider.remove(record, signal);
  assert.equal(asked(), 1);
  world.advance(3_600_000);
  fake.interrupt({ status: 200, json: ovhTime });
  await provider.present(record, signal);
  assert.equal(asked(), 2);
});

test('a zone is refreshed after each change, and when a record to create already exists', async () => {
  await using fake = await startFake(fakeOvh);
  const { provider, signal } = bench(fakeOvh, fake);
  const published = () =>
    fake.requests.filter(({ path }) => path === '/1.0/domain/zone/example.com/refresh').length;
  await provider.present(record, signal);
  await provider.present(record, signal);
  assert.equal(published(), 2);
  await provider.remove(record, signal);
  assert.equal(published(), 3);
  await provider.remove(record, signal);
  assert.equal(published(), 3);
});

test('a consumer key without permission to list zones finds the zone whose records it can list', async () => {
  await using fake = await startFake(fakeOvh);
  const { provider, signal } = bench(fakeOvh, fake);
  const forbidden = fakeOvh.error(403, 'This call has not been granted');
  fake.interrupt(forbidden, ({ path }) => path === '/1.0/domain/zone');
  fake.interrupt(forbidden, ({ path }) => path.startsWith('/1.0/domain/zone/www.example.com/'));
  await provider.present(record, signal);
  assert.deepEqual(fake.values(here), [record.value]);
  fake.interrupt(forbidden, ({ path }) => path === '/1.0/domain/zone');
  const elsewhere = { ...record, name: '_acme-challenge.example.org', zone: 'example.org' };
  const { message } = await refused(provider.present(elsewhere, signal));
  assert.match(
    message,
    /refused to list the zones \(403: This call has not been granted \[NOT_GRANTED_CALL\]\)/,
  );
});
