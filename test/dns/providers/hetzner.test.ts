/** The provider hetzner against a server that behaves as its API does. */
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
import { failedAction, fakeHetzner } from './fake-hetzner.ts';

providerScenarios(fakeHetzner);

test('a failed action is reported with its error message, in which secrets are hidden', async () => {
  await using fake = await startFake(fakeHetzner);
  const { provider, signal } = bench(fakeHetzner, fake);
  const json = { action: { id: failedAction, status: 'running', error: null } };
  fake.interrupt({ status: 201, json }, ({ method }) => method === 'POST');
  const { message } = await refused(provider.present(record, signal));
  assert.match(message, /^Hetzner failed to add a TXT record at .+: Action failed for \[secret\]$/);
});

test('an action that never ends is abandoned after 60 polls', async () => {
  await using fake = await startFake(fakeHetzner);
  const { provider, world, signal } = bench(fakeHetzner, fake);
  const running = { status: 201, json: { action: { id: 7, status: 'running', error: null } } };
  fake.interrupt(running, ({ method }) => method === 'POST');
  for (let poll = 0; poll < 100; poll += 1) fake.interrupt(running, ({ path }) => path === '/v1/actions/7');
  assert.match((await refused(provider.present(record, signal))).message, /took too long to add/);
  assert.equal(world.waits.length, 60);
});

test('a change in a secondary zone is rejected with a hint to the primary server', async () => {
  await using fake = await startFake(fakeHetzner);
  const { provider, signal } = bench(fakeHetzner, fake);
  const zones = [{ id: 1, name: 'example.com', mode: 'secondary' }];
  fake.interrupt({ status: 200, json: { zones } });
  assert.match((await refused(provider.present(record, signal))).message, /secondary zone.* primary server$/);
});

test('a TTL is sent only with a new record set', async () => {
  await using fake = await startFake(fakeHetzner);
  const { provider, signal } = bench(fakeHetzner, fake);
  await provider.present(record, signal);
  await provider.present(another, signal);
  const sent = fake.requests
    .filter(({ method }) => method === 'POST')
    .map(({ body }) => JSON.parse(body) as unknown);
  assert.deepEqual(sent, [
    { records: [{ value: `"${record.value}"` }], ttl: 60 },
    { records: [{ value: `"${another.value}"` }] },
  ]);
});

test('a zone that stays locked (HTTP 423) is reported with the error message of the API', async () => {
  await using fake = await startFake(fakeHetzner);
  const { provider, signal } = bench(fakeHetzner, fake);
  for (let time = 0; time < 8; time += 1) {
    fake.interrupt(fakeHetzner.error(423, 'zone is locked'), ({ method }) => method === 'POST');
  }
  assert.match((await refused(provider.present(record, signal))).message, /\(423: zone is locked/);
});
