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

test('work that is done in time gives its result, and the timer sleeps no longer', async () => {
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

test('work that throws throws the same, and the timer sleeps no longer', async () => {
  const world = new TestWorld();
  const failure = new Error('no');
  await assert.rejects(
    withDeadline(world, 1000, AbortSignal.any([]), () => Promise.reject(failure)),
    failure,
  );
});

test('the clock ends it, and so does the caller; the first of them is reported', async () => {
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

test('an end that was put off comes as much later', async () => {
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

test('a deadline pauses while work is held, and no longer', async () => {
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
