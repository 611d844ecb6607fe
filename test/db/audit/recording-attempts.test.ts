/** When a vault that could not record events tries again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingAttempts } from '../../../src/db/audit/recording-attempts.ts';
import { TestWorld } from '../../harness/test-world.ts';

const full = new Error('the disk is full');

/** A disk that is full or not, and the number of attempts on it. */
function disk() {
  const state = { isFull: true, attempts: 0 };
  const world = new TestWorld();
  const recording = new RecordingAttempts(async () => {
    state.attempts += 1;
    if (state.isFull) throw full;
  });
  const observe = async (recorded: Promise<void>) => {
    recording.observe(recorded);
    await recorded.catch(() => undefined);
  };
  return { state, world, observe, require: () => recording.require(world) };
}

test('no attempt is made while events are recorded', async () => {
  const { state, observe, require } = disk();
  await require();
  await observe(Promise.resolve());
  await require();
  assert.equal(state.attempts, 0);
});

test('a failed attempt is retried after one second at the earliest, even if the clock is set back', async () => {
  const { state, world, observe, require } = disk();
  await observe(Promise.reject(full));
  await Promise.all(Array.from({ length: 5 }, () => assert.rejects(require(), full)));
  world.advance(999);
  await assert.rejects(require(), full);
  assert.equal(state.attempts, 1);
  world.advance(1);
  await assert.rejects(require(), full);
  assert.equal(state.attempts, 2);
  world.advance(-60_000);
  await assert.rejects(require(), full);
  assert.equal(state.attempts, 2);
  world.advance(1000);
  await assert.rejects(require(), full);
  assert.equal(state.attempts, 3);
});

test('a successful attempt ends the retries until recording fails again', async () => {
  const { state, world, observe, require } = disk();
  await observe(Promise.reject(full));
  await assert.rejects(require(), full);
  state.isFull = false;
  world.advance(1000);
  await require();
  await require();
  assert.equal(state.attempts, 2);
  state.isFull = true;
  await observe(Promise.reject(full));
  await assert.rejects(require(), full);
  assert.equal(state.attempts, 3);
});

test('a recorded event ends the retries without an attempt', async () => {
  const { state, observe, require } = disk();
  await observe(Promise.reject(full));
  await observe(Promise.resolve());
  await require();
  assert.equal(state.attempts, 0);
});
