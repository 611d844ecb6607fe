/** The provider route53 against a server that behaves as its API does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { elementsOf } from '../../../src/dns/providers/route53-xml.ts';
import {
  another,
  bench,
  here,
  providerScenarios,
  record,
  refused,
  startFake,
} from '../../harness/dns/fake-provider-scenarios.ts';
import { fakeRoute53, route53Error } from './fake-route53.ts';

providerScenarios(fakeRoute53);

const isChange = ({ method }: { method: string }) => method === 'POST';

const isStatus = ({ path }: { path: string }) => path.startsWith('/2013-04-01/change/');

test('settle waits until a change is in sync and does not query it again', async () => {
  await using fake = await startFake(fakeRoute53);
  const { provider, world, signal } = bench(fakeRoute53, fake);
  await provider.present(record, signal);
  assert.deepEqual(world.waits, []);
  await provider.settle?.([record], signal);
  assert.equal(fake.requests.filter(isStatus).length, 2);
  assert.deepEqual(world.waits, [5000, 7500]);
  await provider.settle?.([record, another], signal);
  assert.equal(fake.requests.filter(isStatus).length, 2, 'what is in sync is not asked for again');
});

test('settle succeeds if the status query fails with 403 or 404, and rejects if it is aborted', async () => {
  await using fake = await startFake(fakeRoute53);
  const { provider, signal } = bench(fakeRoute53, fake);
  for (const status of [403, 404]) {
    await provider.present(record, signal);
    fake.interrupt(route53Error(status, 'no GetChange'), isStatus);
    await provider.settle?.([record], signal);
    await provider.remove(record, signal);
  }
  await provider.present(record, signal);
  await assert.rejects(async () => provider.settle?.([record], AbortSignal.abort()), DnsProviderError);
  assert.deepEqual(fake.values(here), [record.value]);
});

test('a batch of many records is created in one change and removed in another', async () => {
  await using fake = await startFake(fakeRoute53);
  const { provider, signal } = bench(fakeRoute53, fake);
  const names = Array.from({ length: 30 }, (_, index) => ({
    ...record,
    name: `_acme-challenge.n${index}.example.com`,
  }));
  const records = [...names, another, record];
  await provider.batch?.present(records, signal);
  assert.equal(fake.records.length, 32);
  await provider.batch?.remove(records, signal);
  assert.deepEqual(fake.records, []);
  assert.equal(fake.requests.filter(isChange).length, 2);
  assert(fake.requests.filter(({ method }) => method === 'GET').length < 10);
});

test('a batch that conflicts with a concurrent change is retried and preserves that change', async () => {
  await using fake = await startFake(fakeRoute53);
  const { provider, made, api, signal } = bench(fakeRoute53, fake);
  const other = { ...record, name: '_acme-challenge.other.example.com' };
  fake.set(other.name, ['another-clients']);
  await provider.batch?.present([record, other], signal);
  assert.deepEqual(fake.values(other.name), ['another-clients', record.value]);
  // A process that knows nothing of it.
  await made(api.config(fake.url)).batch?.remove([record, other], signal);
  assert.deepEqual(
    fake.records.map(({ value }) => value),
    ['another-clients'],
  );
});

test('a record set that another client changes is read again and keeps the values of that client', async () => {
  await using fake = await startFake(fakeRoute53);
  const { provider, signal } = bench(fakeRoute53, fake);
  await provider.present(record, signal);
  fake.meanwhile(() => fake.add(here, 'another-clients'));
  await provider.present(another, signal);
  fake.meanwhile(() => fake.add(here, 'a-third'));
  await provider.remove(record, signal);
  assert.deepEqual(fake.values(here), ['another-clients', another.value, 'a-third']);
  const actions = fake.requests.filter(isChange).map(({ body }) => elementsOf(body, 'Action').join());
  assert.deepEqual(actions, ['CREATE', ...Array.from({ length: 4 }, () => 'DELETE,CREATE')]);
});

for (const code of ['Throttling', 'PriorRequestNotComplete']) {
  test(`${code} is retried, and is reported if it persists`, async () => {
    await using fake = await startFake(fakeRoute53);
    const { provider, world, signal } = bench(fakeRoute53, fake);
    fake.interrupt(route53Error(400, 'Rate exceeded', code), isChange);
    await provider.present(record, signal);
    assert.equal(world.waits[0], 1000);
    for (let time = 0; time < 4; time += 1)
      fake.interrupt(route53Error(400, 'Rate exceeded', code), isChange);
    const { message } = await refused(provider.remove(record, signal));
    assert.match(message, new RegExp(`\\(400: Rate exceeded \\[${code}\\]\\)$`));
  });
}

test('InvalidInput is reported immediately without a retry', async () => {
  await using fake = await startFake(fakeRoute53);
  const { provider, world, signal } = bench(fakeRoute53, fake);
  fake.interrupt(route53Error(400, 'bad <name> & more', 'InvalidInput'), isChange);
  const { message } = await refused(provider.present(record, signal));
  assert.match(message, /\(400: bad <name> & more \[InvalidInput\]\)$/);
  assert.deepEqual(world.waits, []);
});

test('a configured hosted_zone_id is used without listing zones', async () => {
  await using fake = await startFake(fakeRoute53);
  const { made, signal } = bench(fakeRoute53, fake);
  for (const hosted_zone_id of ['Z8', '/hostedzone/Z8']) {
    const provider = made({ ...fakeRoute53.config(fake.url), hosted_zone_id });
    await provider.present(record, signal);
    await provider.remove(record, signal);
  }
  assert(fake.requests.every(({ path }) => !path.includes('hostedzonesbyname')));
  assert(fake.requests.every(({ path }) => path === '/2013-04-01/hostedzone/Z8/rrset/'));
});

test('no X-Amz-Security-Token header is sent without a session token', async () => {
  await using fake = await startFake(fakeRoute53);
  const { made, signal } = bench(fakeRoute53, fake);
  const { session_token: _, ...permanent } = fakeRoute53.config(fake.url);
  await refused(made(permanent).present(record, signal));
  assert.equal(fake.requests[0]?.headers['x-amz-security-token'], undefined);
});
