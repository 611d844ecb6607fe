/** Refusals that are only counted: one event with a count, nothing lost at an orderly stop, and a bounded memory. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { hour, minute } from '../../../src/base/duration.ts';
import { type Refusal, type RefusalCounts, Refusals } from '../../../src/domain/access/refusals.ts';
import type { AuditEvent } from '../../../src/domain/audit/audit.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

const inFull: RefusalCounts = { howToRecord: () => 'in full' };
const onlyCounted: RefusalCounts = { howToRecord: () => 'counted' };

const refusal: Refusal = {
  actor: { name: 'api-key:3:web', ip: '192.0.2.1', requestId: 'r' },
  action: 'access.refuse',
  target: 'GET /x',
  subject: 'api-key:3',
  detail: { code: 'forbidden', scope: 'private_keys:read' },
};

async function opened(t: TestContext) {
  const { vault, dataDir, ...rest } = await testVault(t);
  const counted = (more: Partial<Refusal> = {}) =>
    vault.refusals.record({ ...refusal, ...more }, onlyCounted);
  return { ...rest, vault, dataDir, counted, events: () => eventsOf(dataDir, 'access.refuse') };
}

test('rejections of one kind become one audit event after an hour, with count, since and until', async (t) => {
  const { vault, world, counted, events } = await opened(t);
  for (let n = 0; n < 5000; n += 1) await counted();
  await counted({ detail: { code: 'unauthenticated', reason: 'revoked' } });
  world.advance(59 * minute);
  await counted();
  await vault.refusals.write('due');
  assert.deepEqual(events(), []);
  world.advance(minute);
  await vault.refusals.write('due');
  const times = { since: '2026-11-21T12:00:00Z', until: '2026-11-21T12:59:00Z' };
  const common = { actor: 'api-key:3:web', action: 'access.refuse', resource: 'api-key:3' };
  assert.deepEqual(events(), [
    { ...common, detail: { ...refusal.detail, count: 5001, ...times }, ip: null, request_id: null },
    {
      ...common,
      detail: { code: 'unauthenticated', reason: 'revoked', count: 1, ...times, until: times.since },
      ip: null,
      request_id: null,
    },
  ]);
  world.advance(hour);
  await vault.refusals.write('due');
  assert.equal(events().length, 2, 'nothing was refused since');
});

test('closing the vault writes the counted rejections', async (t) => {
  const { counted, events, close } = await opened(t);
  for (let n = 0; n < 7; n += 1) await counted();
  await close();
  assert.deepEqual(
    events().map(({ detail }) => detail.count),
    [7],
  );
});

test('rejections that cannot be written stay counted, with those that arrive during the failed write', async () => {
  const world = new TestWorld();
  const written: AuditEvent[] = [];
  let isFull = true;
  const audit = {
    append: async (event: AuditEvent) => {
      if (isFull) throw new Error('the disk is full');
      written.push(event);
    },
  };
  const refusals = new Refusals(audit, world, { state: () => 'ok' });
  await refusals.record(refusal, onlyCounted);
  const failing = refusals.write('all');
  await refusals.record(refusal, onlyCounted);
  await assert.rejects(failing, /the disk is full/);
  isFull = false;
  await refusals.write('all');
  assert.deepEqual(
    written.map(({ detail }) => detail?.count),
    [2],
  );
});

test('the oldest kind of rejection is written early when there are more kinds than the limit', async () => {
  const written: AuditEvent[] = [];
  const audit = { append: async (event: AuditEvent) => void written.push(event) };
  const refusals = new Refusals(audit, new TestWorld(), { state: () => 'ok' }, 2);
  for (const name of ['a', 'b', 'c']) {
    await refusals.record({ ...refusal, actor: { name }, subject: name }, onlyCounted);
  }
  assert.deepEqual(
    written.map(({ resource }) => resource),
    ['a'],
  );
});

test('rejections are only counted while disk space is critical, and written once there is space again', async () => {
  const world = new TestWorld();
  const written: AuditEvent[] = [];
  const audit = { append: async (event: AuditEvent) => void written.push(event) };
  let state: 'critical' | 'low' = 'critical';
  const refusals = new Refusals(audit, world, { state: () => state });
  for (let n = 0; n < 3; n += 1) await refusals.record(refusal, inFull);
  world.advance(hour);
  await refusals.write('due');
  assert.equal(written.length, 0);
  state = 'low';
  await refusals.record(refusal, inFull);
  await refusals.write('due');
  assert.deepEqual(
    written.map(({ resource, detail }) => [resource, detail?.count]),
    [
      ['GET /x', undefined],
      ['api-key:3', 3],
    ],
  );
});
