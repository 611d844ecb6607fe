/** Tasks in hand: never more than may be at once, of a group or in all, and room is told when there is some. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { TasksInHand } from '../../src/jobs/tasks-in-hand.ts';

const { signal } = new AbortController();

/** Groups that wait, and tasks of them that end when they are told to. */
function prepared(waiting: number[]) {
  let room = 0;
  const begun: { readonly group: number; readonly end: () => void }[] = [];
  const inHand = new TasksInHand({ perGroup: 2, inAll: 3 }, () => {
    room += 1;
  });
  const fill = (stop = signal) =>
    inHand.fill(stop, async (full) => {
      const at = waiting.findIndex((group) => !full.includes(group));
      if (at === -1) return undefined;
      const [group = 0] = waiting.splice(at, 1);
      const { promise: ended, resolve: end } = Promise.withResolvers<void>();
      begun.push({ group, end });
      return { group, ended };
    });
  return { inHand, fill, begun, rooms: () => room };
}

suite('tasks in hand', () => {
  test('run two per group and three in total, and the next one starts when one has ended', async () => {
    const { inHand, fill, begun, rooms } = prepared([1, 1, 1, 2, 2, 2]);
    await fill();
    assert.deepEqual(
      begun.map(({ group }) => group),
      [1, 1, 2],
    );
    begun[2]?.end();
    await new Promise(setImmediate);
    assert.equal(rooms(), 1);
    await fill();
    assert.equal(begun.at(-1)?.group, 2);
    for (let at = 0; at < 6; at += 1) {
      begun[at]?.end();
      await new Promise(setImmediate);
      await fill();
    }
    await inHand.ended();
    assert.deepEqual([begun.length, rooms()], [6, 6]);
  });

  test('starts no task after the stop, and waits for running ones', async () => {
    const { inHand, fill, begun } = prepared([1, 2]);
    await fill(AbortSignal.abort());
    assert.equal(begun.length, 0);
    await fill();
    let hasEnded = false;
    const ended = inHand.ended().then(() => {
      hasEnded = true;
    });
    begun[0]?.end();
    await new Promise(setImmediate);
    assert.equal(hasEnded, false);
    begun[1]?.end();
    await ended;
  });
});
