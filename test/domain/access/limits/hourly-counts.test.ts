/** The first of an hour: so many of each name, whichever process counted them, and a bounded memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour, minute } from '../../../../src/base/duration.ts';
import { HourlyCounts } from '../../../../src/domain/access/limits/hourly-counts.ts';
import { TestWorld } from '../../../harness/test-world.ts';

test('each name is admitted up to its limit per hour; further attempts get the time until the next hour', () => {
  const world = new TestWorld();
  const counts = new HourlyCounts(world, 3);
  assert.deepEqual(
    [1, 2, 3].map(() => counts.take('a')),
    [0, 0, 0],
  );
  world.advance(10 * minute);
  assert.equal(counts.take('a'), 50 * minute);
  assert.equal(counts.take('b'), 0);
  world.advance(50 * minute - 1);
  assert.equal(counts.take('a'), 1);
  world.advance(1);
  assert.deepEqual(
    [1, 2, 3, 4].map(() => counts.take('a')),
    [0, 0, 0, hour],
  );
});

test('a clock that is set back starts the hour again', () => {
  const world = new TestWorld();
  const counts = new HourlyCounts(world, 1);
  assert.deepEqual([counts.take('a'), counts.take('a') > 0], [0, true]);
  world.advance(-minute);
  assert.equal(counts.take('a'), 0);
});

test('the least recently counted name starts over when there are more names than the limit', () => {
  const counts = new HourlyCounts(new TestWorld(), 1, 2);
  for (const name of ['a', 'b', 'c']) counts.take(name);
  assert(counts.take('c') > 0);
  assert.equal(counts.take('a'), 0);
});
