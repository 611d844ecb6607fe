/** Many names at once, with the delays of real DNS providers: every order passes, and no record stays. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour, minute } from '../../../src/base/duration.ts';
import {
  addRoute53Provider,
  addSimulatedProvider,
  plainApi,
  silentApi,
  sleepingHook,
} from '../../harness/dns/simulated-dns-providers.ts';
import { type ChallengeFleet, challengeFleet } from './challenge-fleet.ts';

/** All renewals have succeeded, and nothing is left in the DNS when the removals are done. */
async function allPass(
  { vault, clock, dns, renew }: ChallengeFleet,
  count: number,
  whenRenewed = () => undefined,
) {
  const renewals = await renew();
  whenRenewed();
  assert.deepEqual(
    renewals.map(({ status, error }) => [status, error]),
    Array.from({ length: count }, () => ['succeeded', null]),
  );
  await clock.run(vault.removals.idle());
  assert.deepEqual(dns.records, []);
  assert.deepEqual(await vault.db.reader.selectFrom('acme_challenges').selectAll().execute(), []);
}

test('ten certificates of eight names at Route 53 are issued within 40 minutes with at most 20 changes', async (t) => {
  const fleet = await challengeFleet(t);
  await addRoute53Provider(fleet.vault, 'aws', ['example.test']);
  for (let n = 0; n < 10; n += 1) await fleet.certificate(`web${n}`, 8);
  const begun = fleet.clock.now();
  await allPass(fleet, 10);
  // One after the other, in sync after 45 seconds each, they would take 75 minutes. The clock also moves on a little
  // while a busy machine is slow to answer.
  assert(fleet.clock.now() - begun < 40 * minute, `${(fleet.clock.now() - begun) / minute} minutes`);
  assert(fleet.route53.counts.change <= 20, 'a change for each certificate, and one to remove it');
});

test('a certificate of 100 names at Route 53 is issued within 40 minutes', async (t) => {
  const fleet = await challengeFleet(t);
  await addRoute53Provider(fleet.vault, 'aws', ['example.test']);
  await fleet.certificate('big', 100);
  const begun = fleet.clock.now();
  await allPass(fleet, 1);
  // One after the other, in sync after 45 seconds each, they would take 75 minutes. The clock also moves on a little
  // while a busy machine is slow to answer.
  assert(fleet.clock.now() - begun < 40 * minute, `${(fleet.clock.now() - begun) / minute} minutes`);
});

test('a certificate of 100 names is issued through a hook that sleeps 90 seconds, one call at a time', async (t) => {
  const fleet = await challengeFleet(t);
  const { vault, clock, dns } = fleet;
  const hook = sleepingHook(clock, dns, { concurrency: 1 });
  await addSimulatedProvider(vault, 'hook', ['example.test'], hook);
  await fleet.certificate('big', 100);
  const begun = clock.now();
  await allPass(fleet, 1);
  assert.equal(hook.figures.maxAtOnce, 1);
  assert(clock.now() - begun > 2 * hour, 'longer than an attempt whose hour counts what the hooks take');
});

test('forty certificates of one to seven names leave no record, and do not wait for record removals', async (t) => {
  const fleet = await challengeFleet(t);
  const { vault, clock, dns } = fleet;
  await addSimulatedProvider(
    vault,
    'hook',
    ['example.test'],
    sleepingHook(clock, dns, { removeMs: 100_000 }),
  );
  for (let n = 0; n < 40; n += 1) await fleet.certificate(`web${n}`, 1 + (n % 7));
  await allPass(fleet, 40, () => {
    assert(dns.records.length > 40, `of all records, ${dns.records.length} are still being removed`);
    return undefined;
  });
});

test('a DNS provider that never responds does not delay certificates of another provider', async (t) => {
  const fleet = await challengeFleet(t);
  const { vault, clock, dns } = fleet;
  dns.zone('silent.test');
  await addSimulatedProvider(vault, 'silent', ['silent.test'], silentApi(clock));
  await addSimulatedProvider(vault, 'good', ['example.test'], plainApi(clock, dns));
  for (let n = 0; n < 5; n += 1) await fleet.certificate(`bad${n}`, 3, 'silent.test');
  for (let n = 0; n < 5; n += 1) await fleet.certificate(`good${n}`, 3);
  const begun = clock.now();
  const renewals = await fleet.renew();
  const bad = renewals.slice(0, 5).map(({ error }) => error ?? '');
  assert(
    bad.every((error) =>
      /^DNS provider silent did not change _acme-challenge\.\S+ within 120 s$/.test(error),
    ),
    bad.join('\n'),
  );
  const good = renewals.slice(5);
  assert(good.every(({ status }) => status === 'succeeded'));
  assert(Math.max(...good.map(({ finished_at: at }) => at ?? 0)) - begun < 5 * minute);
  await clock.run(vault.removals.idle());
  assert.deepEqual(dns.records, []);
});

for (const minutes of [30, 60]) {
  test(`with --resolver and a negative TTL of ${minutes} minutes dns-01 passes at the first attempt`, async (t) => {
    const fleet = await challengeFleet(t, {
      configured: '1.1.1.1:53',
      zone: { negativeTtlMs: minutes * minute, lagsMs: [0, 20_000] },
    });
    const { vault, clock, dns } = fleet;
    await addSimulatedProvider(vault, 'api', ['example.test'], plainApi(clock, dns));
    await fleet.certificate('web', 3);
    dns.questions = [];
    const begun = clock.now();
    await allPass(fleet, 1);
    assert(clock.now() - begun < 5 * minute);
    const aboutRecords = dns.questions.filter(
      ({ server, name }) => server === '1.1.1.1:53' && name.startsWith('_acme-challenge'),
    );
    assert.deepEqual(aboutRecords, [], 'no cache is asked for the name before it exists');
  });
}
