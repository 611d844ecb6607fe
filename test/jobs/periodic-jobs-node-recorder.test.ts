/** The recorder of nodes: every five seconds, also after the database was away. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { minute, second } from '../../src/base/duration.ts';
import { StorageError } from '../../src/base/storage-error.ts';
import { recordedNodes } from '../../src/domain/nodes/nodes.ts';
import { runNodeRecorder } from '../../src/jobs/periodic-jobs.ts';
import { ownNode, sharedNodes } from '../harness/database/shared-nodes.ts';
import { until } from '../harness/issuance/renewal-fixtures.ts';

/** A node whose recorder runs. */
async function recording(t: TestContext, skew = 0) {
  const { nodes, database, advance } = await sharedNodes(t, skew);
  const [{ vault, world, id, log }] = nodes;
  const stop = new AbortController();
  const sleep = t.mock.method(vault.world, 'sleep');
  const running = runNodeRecorder(vault, ownNode(id), stop.signal);
  t.after(() => {
    stop.abort();
    return running;
  });
  const rounds = (count: number) => until(vault, () => sleep.mock.callCount() === count);
  await rounds(1);
  const seenAt = async () => (await recordedNodes(vault.db.reader))[0]?.seenAt;
  const clockAhead = async () => (await recordedNodes(vault.db.reader))[0]?.clockAhead;
  return { vault, world, log, database, advance, rounds, seenAt, clockAhead };
}

test('a node is recorded at its start and every five seconds with the database time', async (t) => {
  const { database, advance, rounds, seenAt } = await recording(t, minute);
  for (let round = 2; round < 5; round += 1) {
    assert.equal(await seenAt(), database.now());
    advance(5 * second);
    await rounds(round);
  }
  assert.equal(await seenAt(), database.now());
});

test('a clock that is set while the node runs is corrected and recorded', async (t) => {
  const { vault, world, database, rounds, clockAhead } = await recording(t);
  assert.equal(await clockAhead(), 0);
  world.advance(minute);
  await rounds(2);
  assert.equal(await clockAhead(), minute);
  assert.equal(vault.world.now(), database.now());
});

test('a node that cannot be recorded logs it once and is recorded when the database is back', async (t) => {
  const { vault, log, database, advance, rounds, seenAt } = await recording(t);
  const write = t.mock.method(vault.db, 'write', () => Promise.reject(new StorageError('away')));
  for (let round = 2; round < 5; round += 1) {
    advance(5 * second);
    await rounds(round);
  }
  assert.equal(log.lines.filter((line) => line.includes('failed to record that this node runs')).length, 1);
  assert.notEqual(await seenAt(), database.now());
  write.mock.restore();
  advance(5 * second);
  await rounds(5);
  assert.equal(await seenAt(), database.now());
});
