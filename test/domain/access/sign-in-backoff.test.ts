/** The pauses between attempts: they grow, they end, and strangers cannot use up those of a person at home. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../src/base/problem.ts';
import { pauseAfter, SignInBackoff } from '../../../src/domain/access/sign-in-backoff.ts';
import { TestWorld } from '../../harness/test-world.ts';

function fresh() {
  const world = new TestWorld();
  const backoff = new SignInBackoff(world);
  /** Seconds to wait, or 0 where the attempt was let through (and failed). */
  const fail = (name: string | undefined, address?: string): number => {
    try {
      backoff.begin(name, address, 'stranger');
      return 0;
    } catch (error) {
      assert(error instanceof Problem && error.code === 'rate_limited');
      return error.retryAfter ?? Number.NaN;
    }
  };
  return { world, backoff, fail };
}

test('pauses double up to the longest pause', () => {
  const limit = { free: 2, longest: 10_000 };
  const pauses = [0, 1, 2, 3, 4, 5, 6, 7, 1000].map((failures) => pauseAfter(failures, limit));
  assert.deepEqual(pauses, [0, 0, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000]);
});

test('a name gets five attempts from any addresses before pauses begin', () => {
  const { world, fail } = fresh();
  for (let n = 0; n < 5; n += 1) assert.equal(fail('alice', `192.0.2.${n}`), 0);
  assert.equal(fail('ALICE', '192.0.2.99'), 1, 'a name is one in any case');
  world.advance(999);
  assert.equal(fail('alice', '192.0.2.99'), 1, 'what was refused does not count');
  world.advance(1);
  assert.equal(fail('alice', '192.0.2.99'), 0);
  assert.equal(fail('alice', '192.0.2.99'), 2);
  assert.equal(fail('bob', '192.0.2.98'), 0, 'others are not concerned');
});

test('every name gets the same sequence of pauses', () => {
  const { fail } = fresh();
  const waits = (name: string, net: string) => Array.from({ length: 7 }, (_, n) => fail(name, `${net}.${n}`));
  assert.deepEqual(waits('alice', '192.0.2'), waits('nobody', '198.51.100'));
});

test('pauses for a name are capped at five minutes, and an hour resets them', () => {
  const { world, fail } = fresh();
  for (let n = 0; n < 40; n += 1) world.advance(fail('alice', `192.0.2.${n}`) * 1000);
  fail('alice', '198.51.100.1');
  assert.equal(fail('alice', '198.51.100.1'), 300);
  world.advance(60 * 60_000);
  for (let n = 0; n < 5; n += 1) assert.equal(fail('alice', '198.51.100.2'), 0);
});

test('an address that tries many names gets pauses after 20 attempts, capped at 60 seconds', () => {
  const { world, fail } = fresh();
  for (let n = 0; n < 20; n += 1) assert.equal(fail(`name-${n}`, '192.0.2.1'), 0);
  assert.equal(fail('another', '192.0.2.1'), 1);
  assert.equal(fail(undefined, '192.0.2.1'), 1);
  for (let n = 0; n < 40; n += 1) world.advance(fail(`other-${n}`, '192.0.2.1') * 1000);
  fail('another', '192.0.2.1');
  assert.equal(fail('another', '192.0.2.1'), 60);
});

test('attempts from IPv6 addresses are counted per /64 network', () => {
  const { fail } = fresh();
  for (let n = 0; n < 20; n += 1) assert.equal(fail(`name-${n}`, `2001:db8::${n}:1`), 0);
  assert.equal(fail('another', '2001:DB8:0:0:1::9'), 1);
  assert.equal(fail('another', '2001:db8:0:1::1'), 0);
  assert.equal(fail('third', 'fe80::1%eth0'), 0);
});

test('only 5 of 50 concurrent attempts for a name are let through', () => {
  const { fail } = fresh();
  const waits = Array.from({ length: 50 }, () => fail('alice', '192.0.2.1'));
  assert.equal(waits.filter((wait) => wait === 0).length, 5);
});

test('a successful sign-in resets the attempts of the name and leaves those of the address unchanged', () => {
  const { backoff, fail } = fresh();
  for (let n = 0; n < 4; n += 1) fail('alice', '192.0.2.1');
  backoff.begin('alice', '192.0.2.1', 'stranger').succeeded();
  for (let n = 0; n < 5; n += 1) assert.equal(fail('alice', '192.0.2.1'), 0);
  for (let n = 0; n < 11; n += 1) assert.equal(fail(`name-${n}`, '192.0.2.1'), 0);
  assert.equal(fail('another', '192.0.2.1'), 1);
});

test('a withdrawn attempt does not count', () => {
  const { backoff, fail } = fresh();
  for (let n = 0; n < 50; n += 1) backoff.begin('alice', '192.0.2.1', 'stranger').withdrawn();
  assert.equal(fail('alice', '192.0.2.1'), 0);
});

test('failed attempts from other addresses do not delay an address that signed in with the name before', () => {
  const { backoff, fail } = fresh();
  backoff.begin('alice', '203.0.113.7', 'stranger').succeeded();
  for (let n = 0; n < 50; n += 1) fail('alice', `192.0.2.${n}`);
  assert(fail('alice', '192.0.2.99') > 0);
  assert.equal(fail('alice', '203.0.113.7'), 0);
});

test('when the clock is set back no pause gets longer', () => {
  const { world, fail } = fresh();
  for (let n = 0; n < 5; n += 1) fail('alice', '192.0.2.1');
  world.advance(-30 * 60_000);
  assert.equal(fail('alice', '192.0.2.1'), 1);
});

test('memory stays bounded: 10,001 other names and addresses evict the oldest entry', () => {
  const { fail } = fresh();
  for (let n = 0; n < 5; n += 1) fail('first', '192.0.2.1');
  assert.equal(fail('first', '192.0.2.1'), 1);
  for (let n = 0; n < 10_001; n += 1) fail(`name-${n}`, `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  assert.equal(fail('first', '192.0.2.1'), 0, 'the oldest is forgotten');
});
