/**
 * How long audit events are kept: what is older goes in short transactions, says so first, and survives being cut off.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { hashIn } from '../../../src/db/audit/audit-chain.ts';
import { pruneAuditLog } from '../../../src/domain/audit/audit-retention.ts';
import { verifyChain } from '../../../src/domain/audit/audit-verification.ts';
import { outside, refuse } from '../../harness/database/outside-database.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const day = 86_400_000;

async function logged(t: TestContext) {
  const opened = await testVault(t);
  const { vault, world, dataDir } = opened;
  const event = {
    actor: { name: 'a' },
    action: 'certificate.download',
    resource: 'certificate:www',
  } as const;
  return {
    ...opened,
    log: async (count: number) => {
      await Promise.all(Array.from({ length: count }, () => vault.audit.append(event)));
    },
    ids: () =>
      outside(dataDir, (db) =>
        db.prepare('select min(id), count(*) from audit_events').raw().get(),
      ) as number[],
    /** Prunes, and lets time pass between its transactions. */
    prune: async (keepFor: number) => {
      let isOver = false;
      const pruning = pruneAuditLog(vault, keepFor).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        await Promise.race([pruning, world.sleeping(1)]);
        world.advance(50);
      }
      return pruning;
    },
    whole: async () => assert.deepEqual((await verifyChain(vault)).faults, []),
  };
}

test('pruning removes expired events at most a day late and keeps the chain valid', async (t) => {
  const { log, world, ids, prune, whole } = await logged(t);
  await log(30);
  world.advance(30 * day + 1);
  await log(5);
  assert.equal(await prune(30 * day), 0, 'not for an hour');
  assert.deepEqual(ids(), [1, 36]);
  world.advance(day);
  assert.equal(await prune(30 * day), 31);
  assert.deepEqual(ids(), [32, 6]);
  await whole();
  world.advance(400 * day);
  assert.equal(await prune(30 * day), 6);
  assert.deepEqual(ids(), [38, 1], 'what says so stays');
  await whole();
});

test('pruning writes one audit.prune event with the last removed id, its hash and the cutoff time', async (t) => {
  const { log, world, prune, dataDir } = await logged(t);
  await log(3);
  const link = outside(dataDir, (db) =>
    db.prepare('select link from audit_events where id = 4').pluck().get(),
  ) as Buffer;
  world.advance(40 * day);
  await prune(30 * day);
  const [event, ...more] = eventsOf(dataDir, 'audit.prune');
  assert.deepEqual(more, []);
  assert.deepEqual([event?.actor, event?.resource], ['system', 'audit-log']);
  const older = '2026-12-01T12:00:00Z';
  assert.deepEqual(event?.detail, { through: 4, hash: hashIn(link).toString('hex'), older_than: older });
});

test('pruning records audit.prune before it removes any event', async (t) => {
  const { log, world, prune, dataDir, ids } = await logged(t);
  await log(3);
  world.advance(40 * day);
  const stuck = refuse(dataDir, 'delete', 'audit_events', { message: 'stuck' });
  await assert.rejects(prune(30 * day), /stuck/);
  assert.deepEqual(ids(), [1, 5]);
  assert.equal(eventsOf(dataDir, 'audit.prune')[0]?.detail.through, 4);
  stuck.allow();
});

test('pruning removes at most 500 events per transaction', async (t) => {
  const { vault, log, world, prune, ids, whole } = await logged(t);
  await log(1200);
  world.advance(40 * day);
  const write = t.mock.method(vault.db, 'write');
  assert.equal(await prune(30 * day), 1201);
  assert.equal(write.mock.callCount(), 4, 'what it says, and three times at most 500');
  assert.deepEqual(ids(), [1202, 1]);
  await whole();
});

test('pruning lets other events be written between its transactions, and continues after an interruption', async (t) => {
  const { vault, log, world, prune, ids, whole } = await logged(t);
  await log(1200);
  world.advance(40 * day);
  const stop = new AbortController();
  const pruning = pruneAuditLog(vault, 30 * day, stop.signal);
  await world.sleeping(1);
  await log(1);
  stop.abort();
  assert.equal(await pruning, 500);
  assert.deepEqual(ids(), [501, 703]);
  await whole();
  await prune(30 * day);
  assert.deepEqual(ids(), [1202, 3]);
  await whole();
});

test('two concurrent prunings remove the same events and keep the chain valid', async (t) => {
  const { vault, log, world, ids, whole } = await logged(t);
  await log(100);
  world.advance(40 * day);
  await Promise.all([pruneAuditLog(vault, 30 * day), pruneAuditLog(vault, 30 * day)]);
  assert.equal(ids()[0], 102);
  await whole();
});

test('an event with a future time does not block the pruning of later events', async (t) => {
  const { log, world, prune, ids, whole } = await logged(t);
  world.advance(3650 * day);
  await log(1);
  world.advance(-3650 * day);
  await log(1);
  world.advance(40 * day);
  await log(1);
  assert.equal(await prune(30 * day), 3);
  assert.deepEqual(ids(), [4, 2]);
  await whole();
});

test('events that the vault did not write are pruned later, and audit.prune counts them as faults', async (t) => {
  const { vault, dataDir, world, prune, log: add, ids, whole } = await logged(t);
  world.advance(40 * day);
  outside(dataDir, (db) =>
    db.exec(`insert into audit_events (id, at, actor, action, resource, detail)
      select max(id) + 1, 1, 'a', 'b', 'c', '{}' from audit_events`),
  );
  assert.equal(await prune(30 * day), 0, 'the rest could not be held against one without a link');
  await add(1);
  world.advance(40 * day);
  await add(1);
  assert.equal((await verifyChain(vault)).faultCount, 1);
  assert.equal(await prune(30 * day), 3);
  assert.deepEqual(ids(), [4, 2]);
  assert.equal(eventsOf(dataDir, 'audit.prune')[0]?.detail.faults, 1);
  await whole();
});

test('backdated events are pruned, and audit.prune counts them as faults', async (t) => {
  const { dataDir, world, prune, log: add, whole } = await logged(t);
  await add(5);
  outside(dataDir, (db) => db.exec('update audit_events set at = 0 where id in (1, 2, 3)'));
  world.advance(10 * day);
  await add(1);
  assert.equal(await prune(30 * day), 3);
  assert.equal(eventsOf(dataDir, 'audit.prune')[0]?.detail.faults, 3);
  await whole();
});
