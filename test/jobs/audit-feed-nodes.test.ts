/**
 * The feed of audit events on several nodes: each event at least once, in order and by one node at a time, also after
 * the leader died or hung.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { second } from '../../src/base/duration.ts';
import { readJobLease } from '../../src/db/tables/nodes/job-leases.ts';
import { readSetting } from '../../src/db/tables/settings.ts';
import { leadershipDuration } from '../../src/domain/nodes/leadership.ts';
import { type AuditSink, runAuditFeed } from '../../src/jobs/audit-feed.ts';
import { runLeader } from '../../src/jobs/leader.ts';
import { type SharedNode, sharedNodes } from '../harness/database/shared-nodes.ts';

/** What one node delivers. */
class Collector implements AuditSink {
  readonly name = 'file';
  readonly target = 'the collector';
  readonly got: number[] = [];
  /** Pending while what was delivered is not acknowledged. */
  acknowledged: Promise<void> = Promise.resolve();

  async deliver(events: Parameters<AuditSink['deliver']>[0]): Promise<void> {
    this.got.push(...events.map(({ id }) => id));
    await this.acknowledged;
  }

  async close(): Promise<void> {
    // Nothing is open.
  }
}

/** Two nodes, of which the first leads and feeds. */
async function feedingNodes(t: TestContext) {
  const shared = await sharedNodes(t, 0, 0);
  const collectors = [new Collector(), new Collector()] as const;
  const [first, other] = shared.nodes;
  const pass = async (seconds: number, nodes: readonly SharedNode[] = shared.nodes) => {
    for (let step = 0; step < seconds; step += 1) {
      shared.advance(second, nodes);
      await shared.settle();
    }
  };
  /** The database may take any number of seconds of these clocks for an election and for each delivery. */
  const until = async (
    isReached: () => boolean | Promise<boolean>,
    nodes: readonly SharedNode[] = shared.nodes,
  ) => {
    for (let seconds = 0; !(await isReached()); seconds += 1) {
      assert(seconds < 120, `the collectors got ${JSON.stringify(collectors.map(({ got }) => got))}`);
      await pass(1, nodes);
    }
  };
  const compete = (node: SharedNode, collector: Collector) => {
    const abort = new AbortController();
    const { vault, id } = node;
    const ended = runLeader(
      vault,
      id,
      (db, signal) => [runAuditFeed({ ...vault, db }, collector, signal)],
      abort.signal,
    );
    return async () => {
      abort.abort();
      await ended;
    };
  };
  const stopFirst = compete(first, collectors[0]);
  for (let turns = 0; (await cursor(first)) === undefined; turns += 1) {
    assert(turns < 10_000, 'the feed of the first node begins');
    await nextTurn();
  }
  const stopOther = compete(other, collectors[1]);
  // What a node writes at its end may wait for the lock of the other.
  const end = () => shared.during(Promise.all([stopFirst(), stopOther()]));
  const log = async (count: number, nodes?: readonly SharedNode[]) => {
    const event = {
      actor: { name: 'a' },
      action: 'certificate.download',
      resource: 'certificate:www',
    } as const;
    const appended = Promise.all(Array.from({ length: count }, () => other.vault.audit.append(event)));
    await shared.during(appended, nodes);
    return lastId(other);
  };
  return {
    first,
    other,
    collectors,
    database: shared.database,
    pass,
    until,
    log,
    begin: await lastId(other),
    stopFirst: () => shared.during(stopFirst()),
    end,
  };
}

const cursor = ({ vault }: SharedNode) => readSetting(vault.db.reader, 'audit-file-cursor');

const leaderOf = async ({ vault }: SharedNode) => (await readJobLease(vault.db.reader, 'leader'))?.node_id;

async function lastId({ vault }: SharedNode): Promise<number> {
  const rows = await vault.db.reader
    .selectFrom('audit_events')
    .select('id')
    .orderBy('id', 'desc')
    .limit(1)
    .execute();
  return rows[0]?.id ?? 0;
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n);

test('after the leader was killed during a delivery, another node repeats that delivery and continues', async (t) => {
  const { other, collectors, database, pass, until, log, begin, end } = await feedingNodes(t);
  const [ofFirst, ofOther] = collectors;
  const one = await log(3);
  await until(async () => (await cursor(other)) === one);
  assert.deepEqual(ofFirst.got, range(begin + 1, one));
  const { promise: never, resolve } = Promise.withResolvers<void>();
  ofFirst.acknowledged = never;
  const two = await log(3);
  await until(() => ofFirst.got.at(-1) === two);
  assert.deepEqual(ofFirst.got, range(begin + 1, two));
  assert.equal(await cursor(other), one, 'it was not noted before the collector has it');
  // The first node is dead: its clock stands still. The lease may be as old as the last extension was slow.
  const { expires_at: leaseEnd = 0 } = (await readJobLease(other.vault.db.reader, 'leader')) ?? {};
  await pass(Math.floor((leaseEnd - database.now()) / second) - 1, [other]);
  assert.deepEqual(ofOther.got, [], 'while its lease lasts no other node delivers');
  const three = await log(3, [other]);
  await until(async () => (await cursor(other)) === three, [other]);
  assert.deepEqual(ofOther.got, range(one + 1, three));
  resolve();
  await end();
});

test('a node that hung during a delivery while another took over delivers no more, and does not move the position back', async (t) => {
  const { first, other, collectors, pass, until, log, begin, end } = await feedingNodes(t);
  const [ofFirst, ofOther] = collectors;
  const { promise: woken, resolve } = Promise.withResolvers<void>();
  ofFirst.acknowledged = woken;
  const one = await log(3);
  await until(() => ofFirst.got.at(-1) === one);
  assert.deepEqual(ofFirst.got, range(begin + 1, one));
  const two = await log(3, [other]);
  await until(async () => (await cursor(other)) === two, [other]);
  assert.deepEqual(ofOther.got, range(begin + 1, two));
  // It wakes up: its collector answers, all its timers are due, and there is another event.
  const three = await log(1, [other]);
  resolve();
  first.world.advance(leadershipDuration + 4 * second);
  await until(async () => (await cursor(other)) === three);
  await pass(4);
  assert.deepEqual(ofFirst.got, range(begin + 1, one));
  assert.deepEqual(ofOther.got, range(begin + 1, three));
  assert.equal(await cursor(other), three);
  await end();
});

test('a node that hung between two deliveries does not deliver beside the node that took over', async (t) => {
  const { first, other, collectors, pass, until, log, begin, end } = await feedingNodes(t);
  const [ofFirst, ofOther] = collectors;
  const one = await log(3);
  await until(async () => (await cursor(other)) === one);
  await until(async () => (await leaderOf(other)) === other.id, [other]);
  // Nobody has delivered this one yet when the first node wakes up.
  const two = await log(1, [other]);
  first.world.advance(leadershipDuration + 4 * second);
  await until(async () => (await cursor(other)) === two);
  await pass(4);
  assert.deepEqual(ofFirst.got, range(begin + 1, one));
  assert.deepEqual(ofOther.got, range(one + 1, two));
  await end();
});

test('a leader that stops hands the feed over without a gap and without a repetition', async (t) => {
  const { other, collectors, until, log, begin, stopFirst, end } = await feedingNodes(t);
  const [ofFirst, ofOther] = collectors;
  const one = await log(600);
  await until(async () => (await cursor(other)) === one);
  await stopFirst();
  const two = await log(600);
  await until(async () => (await cursor(other)) === two, [other]);
  assert.deepEqual(ofFirst.got, range(begin + 1, one));
  assert.deepEqual(ofOther.got, range(one + 1, two));
  await end();
});
