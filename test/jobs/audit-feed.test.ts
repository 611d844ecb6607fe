/**
 * The feed of audit events: in order, each at least once, from where it stood, whatever the collector and the server go
 * through.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { putSetting } from '../../src/db/tables/settings.ts';
import { type AuditSink, runAuditFeed } from '../../src/jobs/audit-feed.ts';
import { outside, refuse } from '../harness/database/outside-database.ts';
import { type TestVault, testVault } from '../harness/test-vault.ts';

/** A collector that keeps what it gets, unless it is away. */
class Collector implements AuditSink {
  readonly name = 'file';
  readonly target = 'the collector';
  readonly got: number[] = [];
  attempts = 0;
  isAway = false;
  isClosed = false;

  async deliver(events: Parameters<AuditSink['deliver']>[0]): Promise<void> {
    this.attempts += 1;
    if (this.isAway) throw new Error('nobody there');
    this.got.push(...events.map(({ id }) => id));
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

/** Runs the feed until `stop`; `look` lets time pass until it has looked again. */
function feeding(t: TestContext, { vault, world }: TestVault, collector: Collector) {
  const stop = new AbortController();
  const sleep = t.mock.method(vault.world, 'sleep');
  const running = runAuditFeed(vault, collector, stop.signal);
  const asleep = async (count: number) => {
    while (sleep.mock.callCount() < count) await world.turn();
  };
  return {
    asleep,
    look: async (ms = 1000) => {
      const count = sleep.mock.callCount();
      await asleep(1);
      world.advance(ms);
      await asleep(Math.max(count, 1) + 1);
    },
    waits: () => sleep.mock.calls.map(({ arguments: [ms] }) => ms),
    stop: async () => {
      stop.abort();
      await running;
      sleep.mock.restore();
    },
  };
}

async function logged({ vault }: TestVault, count: number): Promise<void> {
  const event = {
    actor: { name: 'a' },
    action: 'certificate.download',
    resource: 'certificate:www',
  } as const;
  await Promise.all(Array.from({ length: count }, () => vault.audit.append(event)));
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n);

test('a new feed starts with the next event and delivers all events in order', async (t) => {
  const opened = await testVault(t);
  const collector = new Collector();
  await logged(opened, 3);
  const { asleep, look, stop } = feeding(t, opened, collector);
  await asleep(1);
  await look();
  assert.equal(collector.attempts, 0, 'nobody is asked where there is nothing');
  await logged(opened, 5);
  await look();
  await logged(opened, 1);
  await look();
  assert.deepEqual(collector.got, range(5, 10));
  assert.equal(collector.attempts, 2);
  await stop();
  assert(collector.isClosed);
});

test('events recorded while no worker delivered are delivered later', async (t) => {
  const opened = await testVault(t);
  const collector = new Collector();
  const first = feeding(t, opened, collector);
  await first.asleep(1);
  await first.stop();
  await logged(opened, 700);
  const second = feeding(t, opened, collector);
  await second.asleep(1);
  await second.stop();
  assert.deepEqual(collector.got, range(2, 701));
  assert.equal(collector.attempts, 2, 'at most 500 at once');
});

test('while the collector is down, retries slow down, the log says so once, and no event is lost', async (t) => {
  const opened = await testVault(t);
  const collector = new Collector();
  const feed = feeding(t, opened, collector);
  await feed.asleep(1);
  await logged(opened, 2);
  collector.isAway = true;
  for (let n = 0; n < 9; n += 1) await feed.look(60_000);
  assert.deepEqual(
    feed.waits().slice(1, 10),
    [2, 4, 8, 16, 32, 60, 60, 60, 60].map((s) => s * 1000),
  );
  await logged(opened, 1);
  collector.isAway = false;
  await feed.look(60_000);
  assert.deepEqual(collector.got, [2, 3, 4]);
  const [away, back, ...more] = opened.log.lines;
  assert.match(
    away ?? '',
    /"warn".*"target":"the collector".*nobody there.*failed to deliver audit events; retrying/,
  );
  assert.match(back ?? '', /"info".*"attempts":10.*"message":"delivery of audit events resumed"/);
  assert.deepEqual(more, []);
  await feed.stop();
});

test('events are delivered again if the position of the feed cannot be stored', async (t) => {
  const opened = await testVault(t);
  const collector = new Collector();
  const feed = feeding(t, opened, collector);
  await feed.asleep(1);
  await logged(opened, 2);
  const full = refuse(opened.dataDir, 'update', 'settings', { when: "old.key = 'audit-file-cursor'" });
  await feed.look();
  full.allow();
  await feed.look(60_000);
  assert.deepEqual(collector.got, [2, 3, 2, 3]);
  await feed.stop();
});

test('events that were pruned before delivery are logged', async (t) => {
  const opened = await testVault(t);
  await logged(opened, 5);
  await opened.vault.db.write((writer) => putSetting(writer, 'audit-file-cursor', 1));
  outside(opened.dataDir, (db) => db.exec('delete from audit_events where id < 4'));
  const collector = new Collector();
  const feed = feeding(t, opened, collector);
  await feed.asleep(1);
  assert.deepEqual(collector.got, [4, 5, 6]);
  assert.match(opened.log.lines.join('\n'), /"from":2,"to":3,"message":"audit events pruned before/);
  await feed.stop();
});
