/** The provider route53 against a server that behaves as its API does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { elementsOf } from '../../src/dns/route53-xml.ts';
import { fakeRoute53, route53Error } from '../harness/fake-provider-route53.ts';
import {
  another,
  bench,
  here,
  providerScenarios,
  record,
  refused,
  startFake,
} from '../harness/fake-provider-scenarios.ts';

providerScenarios(fakeRoute53);

const isChange = ({ method }: { method: string }) => method === 'POST';

test('a new record is waited for until all servers have it', async () => {
  await using fake = await startFake(fakeRoute53);
  const { provider, world, signal } = bench(fakeRoute53, fake);
  await provider.present(record, signal);
  const asked = fake.requests.filter(({ path }) => path.startsWith('/2013-04-01/change/'));
  assert.equal(asked.length, 2);
  assert.deepEqual(world.waits, [3000, 3000]);
  await provider.remove(record, signal);
  assert.equal(world.waits.length, 2);
});

test('where the change may not be watched it is not waited for', async () => {
  await using fake = await startFake(fakeRoute53);
  const { provider, signal } = bench(fakeRoute53, fake);
  fake.interrupt(route53Error(403, 'no GetChange'), ({ path }) => path.includes('/change/'));
  await provider.present(record, signal);
  assert.deepEqual(fake.values(here), [record.value]);
});

test('a set is replaced as it was read, with its TTL, or not at all', async () => {
  await using fake = await startFake(fakeRoute53);
  const { provider, signal } = bench(fakeRoute53, fake);
  await provider.present(record, signal);
  fake.meanwhile(() => fake.add(here, 'somebody-elses'));
  await provider.present(another, signal);
  fake.meanwhile(() => fake.add(here, 'a-third'));
  await provider.remove(record, signal);
  assert.deepEqual(fake.values(here), ['somebody-elses', another.value, 'a-third']);
  const actions = fake.requests.filter(isChange).map(({ body }) => elementsOf(body, 'Action').join());
  assert.deepEqual(actions, ['CREATE', ...Array.from({ length: 4 }, () => 'DELETE,CREATE')]);
});

for (const code of ['Throttling', 'PriorRequestNotComplete']) {
  test(`${code} passes when asked again`, async () => {
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

test('a refusal that no waiting helps against is told at once', async () => {
  await using fake = await startFake(fakeRoute53);
  const { provider, world, signal } = bench(fakeRoute53, fake);
  fake.interrupt(route53Error(400, 'bad <name> & more', 'InvalidInput'), isChange);
  const { message } = await refused(provider.present(record, signal));
  assert.match(message, /\(400: bad <name> & more \[InvalidInput\]\)$/);
  assert.deepEqual(world.waits, []);
});

test('a hosted zone that is given by its id is not looked for', async () => {
  await using fake = await startFake(fakeRoute53);
  const { made, signal } = bench(fakeRoute53, fake);
  for (const hosted_zone_id of ['Z8', '/hostedzone/Z8']) {
    const provider = made({ ...fakeRoute53.config(fake.url), hosted_zone_id });
    await provider.present(record, signal);
    await provider.remove(record, signal);
  }
  assert(fake.requests.every(({ path }) => !path.includes('hostedzonesbyname')));
  assert(fake.requests.some(({ path }) => path === '/2013-04-01/hostedzone/Z8/rrset'));
});

test('without a session token none is sent', async () => {
  await using fake = await startFake(fakeRoute53);
  const { made, signal } = bench(fakeRoute53, fake);
  const { session_token: _, ...permanent } = fakeRoute53.config(fake.url);
  await refused(made(permanent).present(record, signal));
  assert.equal(fake.requests[0]?.headers['x-amz-security-token'], undefined);
});
