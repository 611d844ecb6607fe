/** The watchdog's sign of life: given by a vault that works, withheld by one that does not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minute } from '../../src/base/duration.ts';
import type { Vault } from '../../src/domain/vault.ts';
import { runWatchdog } from '../../src/jobs/watchdog.ts';
import { testVault } from '../harness/test-vault.ts';

/** The first signs of a watchdog with the interval, and how long it waited before each. */
async function firstSigns(vault: Vault, count: number, interval: number) {
  const waits: number[] = [];
  const signs: (readonly string[])[] = [];
  const stop = new AbortController();
  const world = {
    ...vault.world,
    now: () => vault.world.now(),
    sleep: async (ms: number) => {
      waits.push(ms);
    },
  };
  const sign = async (failed: readonly string[]) => {
    signs.push(failed);
    if (signs.length === count) stop.abort();
  };
  await runWatchdog({ ...vault, world }, interval, sign, stop.signal);
  return { waits, signs };
}

test('the watchdog checks twice per interval, the first time after half of one', async (t) => {
  const { vault } = await testVault(t);
  vault.renewalHeartbeat.beat();
  const { waits, signs } = await firstSigns(vault, 3, minute);
  assert.deepEqual(signs, [[], [], []]);
  assert.deepEqual(waits, [30_000, 30_000, 30_000, 30_000]);
});

test('the watchdog reports renewal_engine after a minute without a heartbeat', async (t) => {
  const { vault, world } = await testVault(t);
  vault.renewalHeartbeat.beat();
  world.advance(minute);
  assert.deepEqual((await firstSigns(vault, 1, minute)).signs, [['renewal_engine']]);
});

test('the watchdog sends no sign before the first heartbeat of the renewal engine', async (t) => {
  const { vault } = await testVault(t);
  let looks = 0;
  const world = {
    ...vault.world,
    now: () => vault.world.now(),
    sleep: async () => {
      looks += 1;
      if (looks === 3) vault.renewalHeartbeat.beat();
    },
  };
  const stop = new AbortController();
  const signs: (readonly string[])[] = [];
  const sign = async (failed: readonly string[]) => {
    signs.push(failed);
    stop.abort();
  };
  await runWatchdog({ ...vault, world }, minute, sign, stop.signal);
  assert.deepEqual(signs, [[]]);
  assert.equal(looks, 4);
});

test('the watchdog sends no sign while the database does not respond', async (t) => {
  const { vault } = await testVault(t);
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<number>();
  t.mock.method(vault.db, 'generation', () => {
    asked.resolve();
    return answer.promise;
  });
  vault.renewalHeartbeat.beat();
  let signs = 0;
  const stop = new AbortController();
  const world = { ...vault.world, now: () => vault.world.now(), sleep: async () => undefined };
  const sign = async () => {
    signs++;
    stop.abort();
  };
  const running = runWatchdog({ ...vault, world }, minute, sign, stop.signal);
  await asked.promise;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(signs, 0);
  answer.resolve(1);
  await running;
  assert.equal(signs, 1);
});

test('a stopped watchdog does not query the database', async (t) => {
  const { vault } = await testVault(t);
  const look = t.mock.method(vault.db, 'generation');
  await runWatchdog(vault, minute, async () => assert.fail('a sign'), AbortSignal.abort());
  assert.equal(look.mock.callCount(), 0);
});
