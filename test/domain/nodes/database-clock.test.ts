/** The clock of a shared database: what a machine with a wrong clock takes for the time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minute, second } from '../../../src/base/duration.ts';
import { DatabaseClock } from '../../../src/domain/nodes/database-clock.ts';
import { TestWorld } from '../../harness/test-world.ts';

/** A machine whose clock is ahead of the database by `skew`; `answerTakes` says how long a query takes. */
function machine(skew: number) {
  const database = new TestWorld();
  const world = new TestWorld(database.now() + skew);
  let half = 0;
  const pass = (ms: number) => {
    database.advance(ms);
    world.advance(ms);
  };
  const clock = new DatabaseClock(world, () => {
    pass(half);
    const now = database.now();
    pass(half);
    return now;
  });
  const answerTakes = (ms: number) => {
    half = ms / 2;
  };
  return { clock, database, world, pass, answerTakes };
}

for (const skew of [-minute, 0, minute]) {
  test(`a machine whose clock is ${skew / second} s ahead has the time of the database`, async () => {
    const { clock, database, pass, answerTakes } = machine(skew);
    answerTakes(20);
    assert.equal(await clock.measure(), database.now() - 10);
    assert.deepEqual([clock.ahead, clock.world.now()], [skew, database.now()]);
    pass(minute);
    assert.equal(clock.world.now(), database.now());
  });
}

test('a changed machine clock is detected at the next measurement', async () => {
  const { clock, database, world } = machine(0);
  await clock.measure();
  world.advance(minute);
  await clock.measure();
  assert.deepEqual([clock.ahead, clock.world.now()], [minute, database.now()]);
});

test('network jitter and a slow response do not change the measured offset', async () => {
  const { clock, world, answerTakes } = machine(minute);
  await clock.measure();
  world.advance(90);
  await clock.measure();
  assert.equal(clock.ahead, minute);
  answerTakes(5 * second);
  world.advance(minute);
  await clock.measure();
  assert.equal(clock.ahead, minute);
});

test('the first measurement is used even if the response is slow', async () => {
  const { clock, answerTakes } = machine(minute);
  answerTakes(5 * second);
  await clock.measure();
  assert.equal(clock.ahead, minute);
});

test('sleep and randomBytes are delegated to the machine', async () => {
  const { clock, world } = machine(minute);
  await clock.measure();
  const slept = clock.world.sleep(second);
  await world.sleeping(1);
  world.advance(second);
  await slept;
  assert.equal(clock.world.randomBytes(8).length, 8);
});
