/** Events that share a transaction: those that arrive until it begins, and none that arrive after it failed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NewAuditEvent } from '../../../src/db/audit/audit-insertion.ts';
import { EventGroup } from '../../../src/db/audit/event-group.ts';

const event = (at: number) => ({ at }) as NewAuditEvent;

/** Transactions that begin and end when the test says so. */
function transactions() {
  const begun: { begin: () => readonly number[]; end: () => void; fail: (error: Error) => void }[] = [];
  const group = new EventGroup((next) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    begun.push({ begin: () => next().map(({ at }) => at), end: resolve, fail: reject });
    return promise;
  });
  return { group, begun };
}

test('events that arrive until the transaction begins are in it, later ones in the next', async () => {
  const { group, begun } = transactions();
  const first = Promise.all([group.append([event(1)]), group.append([event(2), event(3)])]);
  assert.equal(begun.length, 1);
  assert.deepEqual(begun[0]?.begin(), [1, 2, 3]);
  const second = group.append([event(4)]);
  begun[0]?.end();
  await first;
  assert.deepEqual(begun[1]?.begin(), [4]);
  begun[1]?.end();
  await second;
});

test('a transaction that cannot begin fails its events, and no later ones', async () => {
  const { group, begun } = transactions();
  const first = group.append([event(1)]);
  begun[0]?.fail(new Error('locked'));
  await assert.rejects(first, /locked/);
  const second = group.append([event(2)]);
  assert.deepEqual(begun[1]?.begin(), [2]);
  begun[1]?.end();
  await second;
});

test('a transaction takes at most 500 events', () => {
  const { group, begun } = transactions();
  for (let n = 0; n < 1100; n += 1) void group.append([event(n)]);
  assert.deepEqual(
    begun.map(({ begin }) => begin().length),
    [500, 500, 100],
  );
});
