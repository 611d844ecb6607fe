/** The bell: no ring is lost, and several are one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Signal } from '../../src/base/signal.ts';
import { TestWorld } from '../harness/test-world.ts';

const never = new AbortController().signal;

function waiting(bell: Signal, signal = never) {
  const state = { done: false, ended: Promise.resolve() };
  state.ended = bell.wait(1000, signal).then(() => {
    state.done = true;
  });
  return state;
}

test('a notification wakes the waiter', async () => {
  const world = new TestWorld();
  const bell = new Signal(world);
  const waiter = waiting(bell);
  await world.turn();
  assert.equal(waiter.done, false);
  bell.notify();
  await waiter.ended;
});

test('a notification without a waiter is remembered for the next wait only', async () => {
  const world = new TestWorld();
  const bell = new Signal(world);
  bell.notify();
  bell.notify();
  await bell.wait(1000, never);
  const waiter = waiting(bell);
  await world.turn();
  assert.equal(waiter.done, false);
  bell.notify();
  await waiter.ended;
});

test('without a notification the wait ends after its timeout and not earlier', async () => {
  const world = new TestWorld();
  const waiter = waiting(new Signal(world));
  world.advance(999);
  await world.turn();
  assert.equal(waiter.done, false);
  world.advance(1);
  await waiter.ended;
});

test('an abort ends the wait, even if it came before the wait', async () => {
  const bell = new Signal(new TestWorld());
  const abort = new AbortController();
  const waiter = waiting(bell, abort.signal);
  abort.abort();
  await waiter.ended;
  await bell.wait(1000, abort.signal);
});
