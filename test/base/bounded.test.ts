/** Work on many values: so much at once, results in order, and no more after a failure. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapBounded } from '../../src/base/bounded.ts';

test('mapBounded keeps to the concurrency limit and returns results in input order', async () => {
  let under = 0;
  let most = 0;
  const results = await mapBounded(3, [5, 1, 4, 2, 3, 0], async (value) => {
    under += 1;
    most = Math.max(most, under);
    for (let turns = 0; turns < value; turns += 1) await Promise.resolve();
    under -= 1;
    return value * 10;
  });
  assert.deepEqual(results, [50, 10, 40, 20, 30, 0]);
  assert.equal(most, 3);
  assert.deepEqual(await mapBounded(3, [], async () => 1), []);
});

test('mapBounded starts nothing after a failure, waits for running work, and throws the error', async () => {
  const gate = Promise.withResolvers<void>();
  const begun: number[] = [];
  let hasEnded = false;
  const all = mapBounded(2, [0, 1, 2, 3], async (value) => {
    begun.push(value);
    if (value === 1) throw new Error('no');
    await gate.promise;
    hasEnded = true;
  });
  gate.resolve();
  await assert.rejects(all, /^Error: no$/);
  assert.deepEqual([begun, hasEnded], [[0, 1], true]);
});
