/** The cleaner of challenges: at the start and every half hour, what nobody needs any more is removed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour, minute } from '../../src/base/duration.ts';
import { insertChallenge } from '../../src/db/tables/issuance/acme-challenges.ts';
import { findDnsProvider } from '../../src/db/tables/issuance/dns-providers.ts';
import { type DnsProvider, DnsProviderError } from '../../src/dns/dns-provider.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { removeDnsProvider } from '../../src/domain/dns-providers/dns-providers.ts';
import { OpenedDnsProviders } from '../../src/domain/dns-providers/opened-dns-providers.ts';
import { leaseDuration } from '../../src/domain/renewals/renewal-claim.ts';
import { runChallengeCleaner } from '../../src/jobs/periodic-jobs.ts';
import { cleanRounds, lookingEngine } from '../harness/issuance/engine-dns.ts';
import { addMemoryProvider, challengeRows, memoryZone, tryWork } from '../harness/issuance/engine-vault.ts';
import { workerOn } from '../harness/issuance/engine-worker.ts';
import { until } from '../harness/issuance/renewal-fixtures.ts';

test('a record that cannot be removed does not fail the renewal; the cleaner removes it within half an hour', async (t) => {
  const { vault, zone, log, work } = await lookingEngine(t);
  const failing = t.mock.method(zone.provider, 'remove', async () => {
    throw new Error('503 try later');
  });
  const ended = await work();
  assert.deepEqual([ended.status, ended.error], ['succeeded', null]);
  assert.deepEqual([zone.records.size, (await challengeRows(vault)).length], [1, 1]);
  assert(
    log.lines.some(
      (line) => line.includes('503 try later') && line.includes('failed to remove challenge records'),
    ),
  );
  assert.deepEqual(await cleanRounds(vault, 1), [30 * minute]);
  assert.deepEqual([zone.records.size, (await challengeRows(vault)).length], [1, 1]);
  failing.mock.restore();
  await cleanRounds(vault, 1);
  assert.deepEqual([zone.records.size, (await challengeRows(vault)).length], [0, 0]);
});

test('records of a dead worker stay while their renewal is open, and are removed after it', async (t) => {
  const { vault, world, zone, work } = await lookingEngine(t);
  const dead = await workerOn(vault, zone, async ({ what, moment }) => {
    if (moment === 'after') return;
    if (what.startsWith('remove')) dead.die();
    // The removal runs beside the rest of the renewal, which must not end before it.
    else if (what.includes('finalize')) await dead.died;
  });
  await Promise.race([tryWork(dead.vault), dead.died]);
  await cleanRounds(vault, 2);
  assert.equal(zone.records.size, 1);
  world.advance(leaseDuration);
  assert.equal((await work()).status, 'succeeded');
  assert.deepEqual([zone.records.size, (await challengeRows(vault)).length], [0, 0]);
});

test('a record that cannot be removed for seven days is left in place with a warning about it', async (t) => {
  const { vault, world, zone, log, work } = await lookingEngine(t);
  t.mock.method(zone.provider, 'remove', async () => {
    throw new Error('never again');
  });
  await work();
  const [row] = await challengeRows(vault);
  assert(row);
  const told = () => log.lines.filter((line) => line.includes('challenge record left in place'));
  world.advance(7 * day - hour);
  await cleanRounds(vault, 1);
  assert.equal((await challengeRows(vault)).length, 1);
  assert.deepEqual(told(), []);
  world.advance(2 * hour);
  await cleanRounds(vault, 2);
  assert.deepEqual(await challengeRows(vault), []);
  const [line = '', ...others] = told();
  assert.equal(others.length, 0);
  assert(line.includes(row.record_name ?? '?') && line.includes(row.record_value ?? '?'), line);
});

test('a record whose DNS provider was removed is left in place with a warning about it', async (t) => {
  const { vault, zone, log, work } = await lookingEngine(t);
  t.mock.method(zone.provider, 'remove', async () => {
    throw new Error('503');
  });
  await work();
  await removeDnsProvider(vault, localCli, 'memory');
  await cleanRounds(vault, 1);
  assert.deepEqual(await challengeRows(vault), []);
  assert(
    log.lines.some(
      (line) => line.includes('challenge record left in place') && line.includes('_acme-challenge'),
    ),
  );
});

test('a failed read of the challenges is logged and retried half an hour later', async (t) => {
  const { vault, log } = await lookingEngine(t);
  const select = t.mock.method(vault.db.reader, 'selectFrom', () => {
    throw new Error('unreadable');
  });
  assert.deepEqual(await cleanRounds(vault, 2), [30 * minute, 30 * minute]);
  select.mock.restore();
  assert.equal(
    log.lines.filter((line) => line.includes('unreadable') && line.includes('retrying')).length,
    2,
  );
});

test('a provider that takes hours to remove a record does not delay the next round of the others', async (t) => {
  const { vault, world, zone, log, work } = await lookingEngine(t);
  const failing = t.mock.method(zone.provider, 'remove', async () => {
    throw new Error('503');
  });
  await work();
  await until(vault, () => log.lines.some((line) => line.includes('Error: 503')));
  failing.mock.restore();
  await addMemoryProvider(vault, memoryZone(), 'slow', 'slow.test');
  const slow = await findDnsProvider(vault.db.reader, 'slow');
  assert(slow);
  const asked: string[] = [];
  const gate = Promise.withResolvers<void>();
  const own = { ...vault, dns: new OpenedDnsProviders(vault.dns.context) };
  const hook: DnsProvider = {
    ...{ limitsItself: true, present: async () => undefined },
    remove: async ({ name }) => {
      asked.push(name);
      await gate.promise;
    },
  };
  await own.dns.get(slow, async () => hook);
  let isDown = true;
  const memory = await findDnsProvider(vault.db.reader, 'memory');
  assert(memory);
  await own.dns.get(memory, async () => ({
    ...zone.provider,
    remove: async (record, signal) => {
      if (isDown) throw new DnsProviderError('503');
      await zone.provider.remove(record, signal);
    },
  }));
  await vault.db.write((writer) =>
    insertChallenge(writer, {
      ...{ renewal_id: null, identifier: 'x.slow.test', type: 'dns-01', token: 'x', key_authorization: 'x' },
      ...{ dns_provider_id: slow.id, record_name: '_acme-challenge.x.slow.test', record_zone: 'slow.test' },
      ...{ record_value: 'value', created_at: world.now() },
    }),
  );
  const stop = new AbortController();
  t.after(() => {
    stop.abort();
    gate.resolve();
  });
  const ended = runChallengeCleaner(own, stop.signal);
  const hasFailed = () => log.lines.some((line) => line.includes('DnsProviderError: 503'));
  await until(vault, () => asked.length === 1 && hasFailed());
  assert.equal(zone.records.size, 1);
  isDown = false;
  world.advance(30 * minute);
  await until(vault, () => zone.records.size === 0);
  assert.equal(asked.length, 1);
  stop.abort();
  gate.resolve();
  await ended;
});
