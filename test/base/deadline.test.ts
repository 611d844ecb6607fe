/** Deadlines end what takes too long, say which end it was, and leave nothing asleep. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Deadline, withDeadline, withPausedDeadline } from '../../src/base/deadline.ts';
import { TestWorld } from '../harness/test-world.ts';

const untilEnded = ({ signal, ended }: Deadline) =>
  new Promise<string>((resolve) => {
    const tell = () => resolve(`ended by ${ended()}`);
    signal.addEventListener('abort', tell);
    if (signal.aborted) tell();
  });

test('withDeadline returns the result of work that finishes in time and cancels the timer', async () => {
  const world = new TestWorld();
  const sleeps: boolean[] = [];
  const watched = {
    sleep: async (ms: number, signal?: AbortSignal) => {
      await world.sleep(ms, signal);
      sleeps.push(signal?.aborted === true);
    },
  };
  const result = await withDeadline(watched, 1000, AbortSignal.any([]), async ({ ended }) => {
    assert.equal(ended(), undefined);
    return 7;
  });
  assert.equal(result, 7);
  assert.deepEqual(sleeps, [true]);
});

test('withDeadline rethrows the error of the work and cancels the timer', async () => {
  const world = new TestWorld();
  const failure = new Error('no');
  const work = async () => {
    assert.equal(world.asleep, 1);
    throw failure;
  };
  const rejected = assert.rejects(withDeadline(world, 1000, AbortSignal.any([]), work), failure);
  await world.turn();
  assert.equal(world.asleep, 0);
  await rejected;
});

test('withDeadline reports whether the timeout or the caller ended the work first', async () => {
  const world = new TestWorld();
  const late = withDeadline(world, 1000, AbortSignal.any([]), untilEnded);
  await world.sleeping(1);
  world.advance(1000);
  assert.equal(await late, 'ended by timeout');
  const caller = new AbortController();
  const stopped = withDeadline(world, 1000, caller.signal, async (deadline) => {
    const how = await untilEnded(deadline);
    world.advance(1000);
    await world.turn();
    return `${how}, and still ${deadline.ended()}`;
  });
  await world.sleeping(1);
  caller.abort();
  assert.equal(await stopped, 'ended by aborted, and still aborted');
  assert.equal(await withDeadline(world, 1000, AbortSignal.abort(), untilEnded), 'ended by aborted');
});

test('extending a deadline delays the timeout by the same time', async () => {
  const world = new TestWorld();
  const begun = world.now();
  const late = withDeadline(world, 1000, AbortSignal.any([]), (deadline) => {
    deadline.extend(500);
    return untilEnded(deadline);
  });
  await world.sleeping(1);
  world.advance(1000);
  await world.turn();
  await world.sleeping(1);
  world.advance(500);
  assert.equal(await late, 'ended by timeout');
  assert.equal(world.now() - begun, 1500);
});

test('withPausedDeadline extends the deadline by the duration of the work', async () => {
  const world = new TestWorld();
  let given = 0;
  const gate = Promise.withResolvers<string>();
  const held = withPausedDeadline(
    world,
    (ms) => {
      given += ms;
    },
    () => gate.promise,
  );
  for (const _ of [1, 2, 3]) {
    await world.sleeping(1);
    world.advance(60_000);
    await world.turn();
  }
  world.advance(12_000);
  gate.resolve('done');
  assert.equal(await held, 'done');
  assert.equal(given, 192_000);
});
