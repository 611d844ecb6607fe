/** The job that prunes the audit log: once an hour it looks, says what it did, and goes on after what went wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StorageError } from '../../src/db/storage-error.ts';
import { runAuditRetention } from '../../src/jobs/audit-retention.ts';
import { eventsOf } from '../harness/http-fixtures.ts';
import { testVault } from '../harness/test-vault.ts';

const day = 86_400_000;

test('old events go when their time has come, also after a failure, until the server stops', async (t) => {
  const { vault, world, log, dataDir } = await testVault(t);
  const stop = new AbortController();
  const told = async (count: number) => {
    while (log.lines.length < count) await world.turn();
    return log.lines.at(-1) ?? '';
  };
  const running = runAuditRetention(vault, day, stop.signal);
  await world.sleeping(1);
  assert.deepEqual([eventsOf(dataDir, 'audit.prune'), log.lines], [[], []]);
  world.advance(3 * day);
  assert.match(await told(1), /^\{"level":"info","events":1,"message":"old audit events were removed"\}$/);
  assert.equal(eventsOf(dataDir, 'audit.prune').length, 1);

  const failing = t.mock.method(vault.db, 'write', () =>
    Promise.reject(new StorageError('the disk is full')),
  );
  await world.sleeping(1);
  world.advance(3 * day);
  assert.match(await told(2), /the disk is full.*could not be pruned; trying again in an hour/);
  failing.mock.restore();
  await world.sleeping(1);
  world.advance(day / 24);
  assert.match(await told(3), /"events":1/);
  assert.equal(eventsOf(dataDir, 'audit.prune').length, 1, 'of two, the first is gone');
  stop.abort();
  await running;
});
