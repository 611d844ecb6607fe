/**
 * Leadership of a shared database: one node at a time has it, whatever the clocks of the nodes say, and earlier leaders
 * write nothing.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, minute, second } from '../../../src/base/duration.ts';
import { readSetting } from '../../../src/db/tables/settings.ts';
import { auditRow, system } from '../../../src/domain/audit/audit.ts';
import { moveAuditCursor } from '../../../src/domain/audit/audit-cursor.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import {
  extendLeadership,
  fencedBy,
  LeaseLostError,
  leaderAt,
  leadershipDuration,
  releaseLeadership,
  type Term,
  takeLeadership,
} from '../../../src/domain/nodes/leadership.ts';
import { type SharedNode, sharedNodes } from '../../harness/database/shared-nodes.ts';

async function elect({ vault, id }: SharedNode): Promise<Term> {
  const term = await takeLeadership(vault, id);
  assert(term !== undefined, `${id} is not elected`);
  return term;
}

const cursor = ({ vault }: SharedNode) => readSetting(vault.db.reader, 'audit-file-cursor');

/** The vault as the jobs of a term see it, and how often they heard that it is lost. */
function leading({ vault }: SharedNode, term: Term) {
  let lost = 0;
  const db = fencedBy(vault.db, term, () => {
    lost += 1;
  });
  return { vault: { ...vault, db }, heardLost: () => lost };
}

for (const skews of [
  [0, 0],
  [minute, -minute],
  [-minute, minute],
] as const) {
  const clocks = `clocks ${skews.map((skew) => `${skew / second} s`).join(' and ')} ahead`;

  test(`the second node leads when the lease of a dead leader has expired, and not before (${clocks})`, async (t) => {
    const { nodes, database, advance } = await sharedNodes(t, ...skews);
    const [first, second] = nodes;
    const term = await elect(first);
    assert.equal(await takeLeadership(second.vault, second.id), undefined);
    advance(leadershipDuration - 1);
    assert.equal(await takeLeadership(second.vault, second.id), undefined);
    assert.equal(await leaderAt(first.vault, database.now()), first.id);
    advance(1);
    assert.equal(await leaderAt(first.vault, database.now()), undefined);
    const next = await elect(second);
    assert(next.fence > term.fence);
    assert.equal(await leaderAt(first.vault, database.now()), second.id);
  });

  test(`a leader that extends its lease stays the leader (${clocks})`, async (t) => {
    const { nodes, advance } = await sharedNodes(t, ...skews);
    const [first, other] = nodes;
    const term = await elect(first);
    for (let round = 0; round < 20; round += 1) {
      advance(leadershipDuration - second);
      assert.equal(await extendLeadership(first.vault, term), true);
      assert.equal(await takeLeadership(other.vault, other.id), undefined);
    }
  });

  test(`a leader that hung while another took over can neither write nor extend its lease (${clocks})`, async (t) => {
    const { nodes, advance } = await sharedNodes(t, ...skews);
    const [first, second] = nodes;
    const term = await elect(first);
    const hung = leading(first, term);
    await moveAuditCursor(hung.vault, 'file', 1);
    advance(leadershipDuration, [second]);
    const next = leading(second, await elect(second));
    await moveAuditCursor(next.vault, 'file', 2);
    await assert.rejects(moveAuditCursor(hung.vault, 'file', 1), LeaseLostError);
    assert.equal(await cursor(first), 2);
    assert.equal(hung.heardLost(), 1);
    assert.equal(await extendLeadership(first.vault, term), false);
    await releaseLeadership(first.vault, term);
    await moveAuditCursor(next.vault, 'file', 3);
    assert.deepEqual([await cursor(first), next.heardLost()], [3, 0]);
  });
}

test('exactly one node is elected when nodes start at the same time', async (t) => {
  const { nodes, during } = await sharedNodes(t, 0, 0, 0);
  for (let round = 0; round < 10; round += 1) {
    const terms = await during(Promise.all(nodes.map(({ vault, id }) => takeLeadership(vault, id))));
    const [leader, ...others] = terms.filter((term) => term !== undefined);
    assert(leader !== undefined && others.length === 0, `${others.length} more leaders`);
    const { vault } = nodes[terms.indexOf(leader)] ?? nodes[0];
    await releaseLeadership(vault, leader);
  }
});

test('after a leader releases its lease, another node leads immediately and old writes fail', async (t) => {
  const { nodes } = await sharedNodes(t, 0, 0);
  const [first, second] = nodes;
  const term = await elect(first);
  await releaseLeadership(first.vault, term);
  assert((await elect(second)).fence > term.fence);
  await assert.rejects(
    moveAuditCursor(leading(first, term).vault, 'file', 1),
    LeaseLostError,
    'the fence holds although the lease was released in order',
  );
});

test('a new worker of the leading node takes over immediately, and writes of the old worker fail', async (t) => {
  const { nodes } = await sharedNodes(t, 0);
  const [node] = nodes;
  const before = leading(node, await elect(node));
  await elect(node);
  await assert.rejects(moveAuditCursor(before.vault, 'file', 1), LeaseLostError);
});

test('a lease from before the database clock was set back does not block another node', async (t) => {
  const { nodes, advance } = await sharedNodes(t, 0, 0);
  const [first, second] = nodes;
  const term = await elect(first);
  advance(-day);
  await elect(second);
  await assert.rejects(moveAuditCursor(leading(first, term).vault, 'file', 1), LeaseLostError);
});

test('transactions and audit events are rejected as a whole after the lease is lost', async (t) => {
  const { nodes, advance } = await sharedNodes(t, 0, 0);
  const [first, second] = nodes;
  const hung = leading(first, await elect(first));
  const input = (name: string) => parseInput(createCertificateInput, { name, domains: ['a.test'] });
  await createCertificate(hung.vault, system, input('one'));
  const event = (request: string) =>
    auditRow(
      { actor: { name: 'system', requestId: request }, action: 'audit.prune', resource: 'audit' },
      hung.vault.world.now(),
    );
  await hung.vault.db.append([event('held')]);
  const count = async () => {
    const { reader } = hung.vault.db;
    const events = await reader.selectFrom('audit_events').select('request_id').orderBy('id').execute();
    const certificates = await reader.selectFrom('certificates').select('name').execute();
    return { events: events.length, last: events.at(-1)?.request_id, certificates: certificates.length };
  };
  const before = await count();
  assert.deepEqual([before.last, before.certificates], ['held', 1]);
  advance(leadershipDuration);
  await elect(second);
  await assert.rejects(createCertificate(hung.vault, system, input('two')), LeaseLostError);
  await assert.rejects(hung.vault.db.append([event('lost')]), LeaseLostError);
  assert.deepEqual(await count(), before);
});

test('a fenced database delegates check, requireWritable, generation, place and integrity', async (t) => {
  const { nodes } = await sharedNodes(t, 0);
  const [node] = nodes;
  const { db } = leading(node, await elect(node)).vault;
  await db.check();
  await db.requireWritable();
  assert.equal(await db.generation(), await node.vault.db.generation());
  assert.equal(db.place, node.vault.db.place);
  assert.equal(db.integrity, node.vault.db.integrity);
});
