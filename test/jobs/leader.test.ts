/**
 * The leader's jobs: they run on one node at a time, move to another one when it stops, hangs or loses the database,
 * and end first.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { minute, second } from '../../src/base/duration.ts';
import { StorageError } from '../../src/base/storage-error.ts';
import { moveAuditCursor } from '../../src/domain/audit/audit-cursor.ts';
import { LeaseLostError, leadershipDuration } from '../../src/domain/nodes/leadership.ts';
import { type BeginJobs, runLeader } from '../../src/jobs/leader.ts';
import { type SharedNode, sharedNodes } from '../harness/database/shared-nodes.ts';

/** A node that takes part in the election. */
type Candidate = SharedNode & {
  readonly leads: () => boolean;
  /** How often it was elected. */
  readonly terms: () => number;
  /** Writes as the jobs of its newest term. */
  readonly write: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** `jobsEnd` holds up the jobs of a node after their signal was aborted. */
function candidate(t: TestContext, node: SharedNode, jobsEnd: Promise<void> = Promise.resolve()): Candidate {
  const abort = new AbortController();
  let terms = 0;
  let running = 0;
  let db = node.vault.db;
  const begin: BeginJobs = (fenced, signal) => {
    db = fenced;
    terms += 1;
    running += 1;
    const job = async () => {
      if (!signal.aborted) await once(signal, 'abort');
      await jobsEnd;
      running -= 1;
    };
    return [job()];
  };
  const { vault, id } = node;
  const ended = runLeader(vault, id, begin, abort.signal);
  const stop = async () => {
    abort.abort();
    await ended;
  };
  t.after(stop);
  const write = () => moveAuditCursor({ db }, 'file', 1);
  return { ...node, leads: () => running > 0, terms: () => terms, write, stop };
}

/** Waits for what happens without the clocks moving. */
async function until(holds: () => boolean, what: string): Promise<void> {
  for (let turns = 0; !holds(); turns += 1) {
    assert(turns < 100_000, `never: ${what}`);
    await nextTurn();
  }
}

/** Moves the clocks by seconds, each when what it starts has gone as far as it can without the clocks. */
async function pass(
  { advance, settle }: Pick<Awaited<ReturnType<typeof sharedNodes>>, 'advance' | 'settle'>,
  seconds: number,
  nodes: readonly SharedNode[],
): Promise<void> {
  for (let step = 0; step < seconds; step += 1) {
    advance(second, nodes);
    await settle();
  }
}

const saying = ({ log }: SharedNode, message: string) => log.lines.filter((line) => line.includes(message));

/** The first node leads, the second would like to. */
async function leaderAndOther(t: TestContext, skews: readonly [number, number], jobsEnd?: Promise<void>) {
  const shared = await sharedNodes(t, ...skews);
  const leader = candidate(t, shared.nodes[0], jobsEnd);
  await until(leader.leads, 'the first node leads');
  const other = candidate(t, shared.nodes[1]);
  return { shared, leader, other };
}

test('exactly one of three nodes runs the jobs, and the others see a fresh heartbeat', async (t) => {
  const shared = await sharedNodes(t, 0, 0, 0);
  const candidates = shared.nodes.map((node) => candidate(t, node));
  await pass(shared, 60, candidates);
  const leading = candidates.filter(({ leads }) => leads());
  assert.equal(leading.length, 1);
  assert.equal(leading[0]?.terms(), 1);
  assert.equal(
    candidates.reduce((sum, { terms }) => sum + terms(), 0),
    1,
  );
  for (const { vault, leads } of candidates) {
    // The engine of the leader beats by itself.
    if (!leads()) assert(vault.renewalHeartbeat.isFresh);
  }
});

for (const skews of [
  [0, 0],
  [minute, -minute],
  [-minute, minute],
] as const) {
  const clocks = `clocks ${skews.map((skew) => `${skew / second} s`).join(' and ')} ahead`;

  test(`a node that stops hands the jobs over within a second, after its own have ended (${clocks})`, async (t) => {
    const ending = Promise.withResolvers<void>();
    const { shared, leader, other } = await leaderAndOther(t, skews, ending.promise);
    const stopped = leader.stop();
    await pass(shared, 60, [leader, other]);
    assert(leader.leads() && !other.leads(), 'the lease is extended while the jobs end');
    await leader.write();
    ending.resolve();
    await stopped;
    await pass(shared, 1, [leader, other]);
    assert(other.leads() && !leader.leads());
    assert.deepEqual(saying(leader, 'stopping the background jobs'), []);
  });

  test(`a node that hangs loses the jobs, and when it wakes up it writes nothing and stops them (${clocks})`, async (t) => {
    const { shared, leader, other } = await leaderAndOther(t, skews);
    await pass(shared, 30, [leader, other]);
    assert(leader.leads() && !other.leads());
    await pass(shared, leadershipDuration / second, [other]);
    assert(other.leads(), 'the other node took over');
    await assert.rejects(leader.write(), LeaseLostError);
    await until(() => !leader.leads(), 'the jobs end');
    assert.equal(saying(leader, 'stopping the background jobs').length, 1);
    await other.write();
    await pass(shared, 30, [leader, other]);
    assert(other.leads() && !leader.leads(), 'and it does not take them back');
    assert.deepEqual([leader.terms(), other.terms()], [1, 1]);
  });

  test(`a hung leader stops its jobs when it wakes up, even if they write nothing (${clocks})`, async (t) => {
    const { shared, leader, other } = await leaderAndOther(t, skews);
    await pass(shared, leadershipDuration / second + 1, [other]);
    assert(other.leads() && leader.leads(), 'it still hangs');
    leader.world.advance(leadershipDuration + second);
    await until(() => !leader.leads(), 'the jobs end');
  });
}

test('a leader whose database does not respond stops its jobs before another node can lead', async (t) => {
  const { shared, leader, other } = await leaderAndOther(t, [0, 0]);
  const { promise: answer, resolve } = Promise.withResolvers<void>();
  const write = t.mock.method(leader.vault.db, 'write', () => answer);
  await pass(shared, leadershipDuration / second - 1, [leader, other]);
  assert(!leader.leads() && !other.leads());
  assert.match(saying(leader, 'stopping the background jobs')[0] ?? '', /was not extended in time/);
  await pass(shared, 2, [leader, other]);
  assert(other.leads());
  write.mock.restore();
  resolve();
  await pass(shared, 5, [leader, other]);
  assert.deepEqual([leader.leads(), other.leads()], [false, true]);
});

test('a leader that cannot extend its lease for a few seconds stays the leader', async (t) => {
  const { shared, leader, other } = await leaderAndOther(t, [0, 0]);
  const write = t.mock.method(leader.vault.db, 'write', () => Promise.reject(new StorageError('away')));
  await pass(shared, 10, [leader, other]);
  write.mock.restore();
  await pass(shared, 30, [leader, other]);
  assert(leader.leads() && !other.leads());
  assert.equal(leader.terms(), 1);
  assert(saying(leader, 'failed to extend the lease').length > 1);
});

test('a node that cannot reach the database logs it once and leads when it can', async (t) => {
  const shared = await sharedNodes(t, 0);
  const [node] = shared.nodes;
  const write = t.mock.method(node.vault.db, 'write', () => Promise.reject(new StorageError('away')));
  const only = candidate(t, node);
  await pass(shared, 10, [only]);
  assert.equal(saying(only, 'failed to query which node leads').length, 1);
  assert(!only.leads());
  write.mock.restore();
  await pass(shared, 1, [only]);
  assert(only.leads());
});

test('a leader that lost its lease to a database outage leads again when the database is back', async (t) => {
  const shared = await sharedNodes(t, 0);
  const only = candidate(t, shared.nodes[0]);
  await until(only.leads, 'it leads');
  const write = t.mock.method(only.vault.db, 'write', () => Promise.reject(new StorageError('away')));
  await pass(shared, leadershipDuration / second, [only]);
  assert(!only.leads());
  write.mock.restore();
  await pass(shared, 2, [only]);
  assert(only.leads());
  assert.equal(only.terms(), 2);
  await only.write();
});

test('a leader that cannot release its lease when it stops is followed when the lease has expired', async (t) => {
  const { shared, leader, other } = await leaderAndOther(t, [0, 0]);
  const write = t.mock.method(leader.vault.db, 'write', () => Promise.reject(new StorageError('away')));
  await leader.stop();
  write.mock.restore();
  assert.equal(saying(leader, 'failed to release the lease').length, 1);
  await pass(shared, leadershipDuration / second - 1, [other]);
  assert(!other.leads(), 'the lease has to expire');
  await pass(shared, 2, [other]);
  assert(other.leads());
});
