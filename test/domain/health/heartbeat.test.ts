/** The heartbeat: fresh for a minute after each beat, and never before the first. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, minute } from '../../../src/base/duration.ts';
import { Heartbeat } from '../../../src/domain/health/heartbeat.ts';
import { TestWorld } from '../../harness/test-world.ts';

test('a heartbeat is not fresh before the first beat', () => {
  assert.equal(new Heartbeat(new TestWorld()).isFresh, false);
});

test('a heartbeat is fresh for less than a minute after a beat', () => {
  const world = new TestWorld();
  const heartbeat = new Heartbeat(world);
  heartbeat.beat();
  assert.equal(heartbeat.isFresh, true);
  world.advance(minute - 1);
  assert.equal(heartbeat.isFresh, true);
  world.advance(1);
  assert.equal(heartbeat.isFresh, false);
  heartbeat.beat();
  assert.equal(heartbeat.isFresh, true);
});

test('a clock that is set back does not keep a dead engine alive', () => {
  const world = new TestWorld();
  const heartbeat = new Heartbeat(world);
  heartbeat.beat();
  world.advance(-day);
  world.advance(minute);
  assert.equal(heartbeat.isFresh, false);
});
