/** Paces: a burst, then as time allows, for each name by itself and in bounded memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { minute, second } from '../../../../src/base/duration.ts';
import { TokenBuckets } from '../../../../src/domain/access/limits/token-buckets.ts';
import { TestWorld } from '../../../harness/test-world.ts';

test('a full bucket admits its burst, then one request per refill interval', () => {
  const world = new TestWorld();
  const buckets = new TokenBuckets(world, { burst: 3, perMinute: 60 });
  const take = () => buckets.take('a');
  assert.deepEqual([take(), take(), take(), take()], [0, 0, 0, second]);
  world.advance(second - 1);
  assert.equal(take(), 1);
  world.advance(1);
  assert.deepEqual([take(), take()], [0, second]);
  world.advance(minute);
  assert.deepEqual([take(), take(), take(), take()], [0, 0, 0, second]);
});

test('each name has its own bucket', () => {
  const buckets = new TokenBuckets(new TestWorld(), { burst: 1, perMinute: 1 });
  assert.deepEqual([buckets.take('a'), buckets.take('b'), buckets.take('a')], [0, 0, minute]);
});

test('a clock that is set back makes no client wait longer', () => {
  const world = new TestWorld();
  const buckets = new TokenBuckets(world, { burst: 1, perMinute: 60 });
  buckets.take('a');
  world.advance(-minute);
  assert.equal(buckets.take('a'), second);
  world.advance(second);
  assert.equal(buckets.take('a'), 0);
});

test('50,000 names keep at most 1000 buckets in memory', () => {
  const buckets = new TokenBuckets(new TestWorld(), { burst: 1, perMinute: 1 }, 1000);
  for (let count = 0; count < 50_000; count += 1) buckets.take(`name ${count}`);
  assert.equal(buckets.size, 1000);
});

test('in any sequence no more is admitted than the rate allows, and a client that waits as requested is admitted', () => {
  const paces = fc.record({
    burst: fc.integer({ min: 1, max: 20 }),
    perMinute: fc.integer({ min: 1, max: 600 }),
  });
  const pauses = fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 200 });
  fc.assert(
    fc.property(paces, pauses, (pace, steps) => {
      const world = new TestWorld(0);
      const buckets = new TokenBuckets(world, pace);
      let passed = 0;
      let wait = 0;
      for (const step of steps) {
        world.advance(step);
        wait = buckets.take('a');
        if (wait === 0) passed += 1;
      }
      assert(passed <= pace.burst + (world.now() / minute) * pace.perMinute);
      if (wait > 0) {
        world.advance(wait);
        assert.equal(buckets.take('a'), 0);
      }
    }),
  );
});
