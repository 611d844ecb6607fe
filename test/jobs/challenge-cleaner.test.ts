/** The cleaner of challenges: at the start and every half hour, what nobody needs any more is removed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour, minute } from '../../src/base/duration.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { removeDnsProvider } from '../../src/domain/issuance/dns-providers.ts';
import { leaseDuration } from '../../src/domain/renewals/renewal-claim.ts';
import { cleanRounds, lookingEngine } from '../harness/engine-dns.ts';
import { challengeRows, tryWork } from '../harness/engine-vault.ts';
import { workerOn } from '../harness/engine-worker.ts';

test('a record that cannot be taken down does not fail the renewal; the cleaner removes it within half an hour', async (t) => {
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

test('what a dead worker put up stays while its renewal is open, and comes down when that has ended', async (t) => {
  const { vault, world, zone, work } = await lookingEngine(t);
  const dead = await workerOn(vault, zone, ({ what, moment }) => {
    if (what.startsWith('remove') && moment === 'before') dead.die();
  });
  await Promise.race([tryWork(dead.vault), dead.died]);
  await cleanRounds(vault, 2);
  assert.equal(zone.records.size, 1);
  world.advance(leaseDuration);
  assert.equal((await work()).status, 'succeeded');
  assert.deepEqual([zone.records.size, (await challengeRows(vault)).length], [0, 0]);
});

test('a record that nobody could remove for seven days is left to people, with a warning that names it', async (t) => {
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

test('a record whose provider was removed is left to people, with a warning that names it', async (t) => {
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

test('a table that cannot be read is logged, and read again half an hour later', async (t) => {
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
