/** KeyedMutex: one after the other under the same key, in order, and no wait for other keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KeyedMutex, TurnAborted } from '../../src/base/keyed-mutex.ts';

test('work under one key runs one after the other, in the order in which it came', async () => {
  const turns = new KeyedMutex();
  const seen: string[] = [];
  const work = (name: string) => () =>
    Promise.resolve(seen.push(`${name} begins`)).then(() => seen.push(`${name} ends`));
  await Promise.all(['a', 'b', 'c'].map((name) => turns.take('key', work(name))));
  assert.deepEqual(seen, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
});

test('each caller receives the result of its own work', async () => {
  const turns = new KeyedMutex();
  const given = [1, 2, 3].map((n) => turns.take('key', async () => n));
  assert.deepEqual(await Promise.all(given), [1, 2, 3]);
});

test('a rejected task is reported to its caller and does not block the next task', async () => {
  const turns = new KeyedMutex();
  const failing = turns.take('key', () => Promise.reject(new Error('no')));
  const next = turns.take('key', async () => 'done');
  await assert.rejects(failing, /^Error: no$/);
  assert.equal(await next, 'done');
});

test('a task that throws synchronously does not block the next task', async () => {
  const turns = new KeyedMutex();
  const failing = turns.take('key', () => {
    throw new Error('at once');
  });
  const next = turns.take('key', async () => 'done');
  await assert.rejects(failing, /at once/);
  assert.equal(await next, 'done');
});

test('work under another key does not wait', async () => {
  const turns = new KeyedMutex();
  const gate = Promise.withResolvers<void>();
  const held = turns.take('one', () => gate.promise);
  assert.equal(await turns.take('other', async () => 'done'), 'done');
  gate.resolve();
  await held;
});

test('a task runs whether it is queued while another task runs or after that has ended', async () => {
  const turns = new KeyedMutex();
  const gate = Promise.withResolvers<string>();
  const first = turns.take('key', () => gate.promise);
  const second = turns.take('key', async () => 'second');
  gate.resolve('first');
  assert.deepEqual(await Promise.all([first, second]), ['first', 'second']);
  assert.equal(await turns.take('key', async () => 'third'), 'third');
});

test('tasks with the same key never overlap and run in order, for any mix of tasks', async () => {
  const task = fc.record({
    key: fc.constantFrom('a', 'b', 'c'),
    steps: fc.nat({ max: 5 }),
    fails: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(task, { maxLength: 20 }), async (tasks) => {
      const turns = new KeyedMutex();
      const underWay = new Map<string, number>();
      const order: number[] = [];
      const working = tasks.map(({ key, steps, fails }, index) =>
        turns.take(key, async () => {
          assert.equal(underWay.get(key) ?? 0, 0);
          underWay.set(key, 1);
          for (let n = 0; n < steps; n += 1) await Promise.resolve();
          underWay.set(key, 0);
          order.push(index);
          if (fails) throw new Error('failed');
        }),
      );
      const ends = await Promise.allSettled(working);
      assert.deepEqual(
        ends.map(({ status }) => status === 'rejected'),
        tasks.map(({ fails }) => fails),
      );
      for (const wanted of ['a', 'b', 'c']) {
        const mine = order.filter((index) => tasks[index]?.key === wanted);
        assert.deepEqual(
          mine,
          mine.toSorted((one, other) => one - other),
        );
      }
    }),
  );
});

test('at most atOnce tasks run concurrently, and the remaining tasks start in order', async () => {
  const turns = new KeyedMutex();
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const begun: number[] = [];
  const all = gates.map((gate, index) =>
    turns.take(
      'key',
      () => {
        begun.push(index);
        return gate.promise;
      },
      { atOnce: 2 },
    ),
  );
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  await settle();
  assert.deepEqual(begun, [0, 1]);
  gates[1]?.resolve();
  await settle();
  assert.deepEqual(begun, [0, 1, 2]);
  for (const gate of gates) gate.resolve();
  await Promise.all(all);
  assert.deepEqual(begun, [0, 1, 2, 3, 4]);
});

test('urgent tasks run before other waiting tasks, in order of arrival', async () => {
  const turns = new KeyedMutex();
  const begun: string[] = [];
  const take = (name: string, isUrgent: boolean) =>
    turns.take('key', async () => void begun.push(name), { isUrgent });
  await Promise.all([take('a', false), take('b', false), take('c', true), take('d', false), take('e', true)]);
  assert.deepEqual(begun, ['a', 'c', 'e', 'b', 'd']);
});

test('an aborted wait rejects with TurnAborted, and the next task runs', async () => {
  const turns = new KeyedMutex();
  const gate = Promise.withResolvers<string>();
  const first = turns.take('key', () => gate.promise);
  const stop = new AbortController();
  let hasBegun = false;
  const work = async () => {
    hasBegun = true;
  };
  const given = turns.take('key', work, { signal: stop.signal });
  const next = turns.take('key', async () => 'next');
  stop.abort();
  await assert.rejects(given, TurnAborted);
  await assert.rejects(turns.take('key', work, { signal: stop.signal }), TurnAborted);
  gate.resolve('first');
  assert.deepEqual(await Promise.all([first, next]), ['first', 'next']);
  assert.equal(hasBegun, false);
});
