/** Looking through many audit events, over the blocks by which they are indexed: what is found is what a look at each finds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditEventRow } from '../../../src/db/audit/audit-events.ts';
import { insertAuditEvents } from '../../../src/db/audit/audit-insertion.ts';
import { type AuditFilter, listAuditEvents } from '../../../src/db/audit/audit-search.ts';
import { testVault } from '../../harness/test-vault.ts';

const count = 9000;
const start = Date.parse('2026-01-01T00:00:00Z');

/** One actor does nearly all, some do a little, one did something once; a day has a thousand events. */
function eventOf(n: number) {
  const actor = n === 17 || n === 8003 ? 'rare' : n % 50 === 0 ? `some ${n % 3}` : 'busy';
  return {
    at: start + n * 86_400,
    actor,
    action: n % 7 === 0 ? 'access.refuse' : 'certificate.download',
    resource: `certificate:${n % 400}`,
    detail: '{}',
    ip: null,
    request_id: null,
  };
}

test('pages by every filter have what a look at each event finds, in both orders', async (t) => {
  const { vault } = await testVault(t);
  const { reader } = vault.db;
  await vault.db.write((writer) =>
    insertAuditEvents(
      writer,
      Array.from({ length: count }, (_, n) => eventOf(n)),
    ),
  );
  // Pruning leaves a beginning that is not the first block's.
  await vault.db.write((writer) => writer.deleteFrom('audit_events').where('id', '<=', 12).execute());
  const all = await reader.selectFrom('audit_events').selectAll().orderBy('id').execute();
  const filters: AuditFilter[] = [
    {},
    { actor: 'busy' },
    { actor: 'rare' },
    { actor: 'some 1', action: 'access.refuse' },
    { actor: 'nobody' },
    { action: 'access.refuse' },
    { resource: 'certificate:399' },
    { resource: 'certificate:3', actor: 'rare' },
    { resource: 'certificate:50', actor: 'some 2', since: start + 40 * 86_400 },
    { actor: 'busy', since: start + 86_400 * 2000, until: start + 86_400 * 7000 },
    { since: start + 86_400 * 8990 },
  ];
  for (const filter of filters) {
    const expected = all.filter((event) => fits(filter, event)).map(({ id }) => id);
    for (const limit of [3, 700]) {
      const upwards: number[] = [];
      for (let after: number | undefined = 0; after !== undefined; ) {
        const page = await listAuditEvents(reader, vault.world, filter, { after, limit }, 'oldest first');
        upwards.push(...page.map(({ id }) => id));
        after = page.length === limit && upwards.length < 3000 ? upwards.at(-1) : undefined;
      }
      assert.deepEqual(upwards, expected.slice(0, upwards.length), JSON.stringify(filter));
      assert(upwards.length === expected.length || upwards.length >= limit, JSON.stringify(filter));
      const downwards = await listAuditEvents(reader, vault.world, filter, { limit });
      assert.deepEqual(
        downwards.map(({ id }) => id),
        expected.toReversed().slice(0, limit),
        JSON.stringify(filter),
      );
      const before = expected[Math.floor(expected.length / 2)] ?? count;
      const earlier = await listAuditEvents(reader, vault.world, filter, { before, limit });
      assert.deepEqual(
        earlier.map(({ id }) => id),
        expected
          .filter((id) => id < before)
          .toReversed()
          .slice(0, limit),
        JSON.stringify({ ...filter, before }),
      );
    }
  }
});

test('other work has its turn after each few thousand events that a search looks through', async (t) => {
  const { vault } = await testVault(t);
  await vault.db.write((writer) =>
    insertAuditEvents(
      writer,
      Array.from({ length: 40_000 }, (_, n) => ({ ...eventOf(n), action: n === 5 ? 'rare' : 'usual' })),
    ),
  );
  const searches: [AuditFilter, number][] = [
    [{ actor: 'busy', action: 'rare' }, 9],
    [{ resource: 'certificate:5', action: 'rare' }, 9],
    [{ action: 'usual', since: start + 39_500 * 86_400, until: start + 39_500 * 86_400 }, 1],
    [{ until: start }, 1],
  ];
  for (const [filter, least] of searches) {
    let turns = 0;
    const world = {
      turn: async () => {
        turns += 1;
      },
    };
    const found = await listAuditEvents(vault.db.reader, world, filter, { limit: 3 });
    assert.equal(found.length, 1, JSON.stringify(filter));
    assert.ok(turns >= least, `${JSON.stringify(filter)}: ${turns} turns`);
  }
});

test('a gap between ids is skipped', async (t) => {
  const { vault } = await testVault(t);
  const far = 9e14;
  const row = { ...eventOf(17), link: Buffer.alloc(0) };
  await vault.db.write((writer) =>
    writer
      .insertInto('audit_events')
      .values([
        { ...row, id: 500 },
        { ...row, id: far },
      ])
      .execute(),
  );
  for (const filter of [{ actor: 'rare' }, { until: row.at }]) {
    for (const order of ['newest first', 'oldest first'] as const) {
      const found = await listAuditEvents(vault.db.reader, vault.world, filter, { limit: 3 }, order);
      assert.deepEqual(
        found.map(({ id }) => id).toSorted((a, b) => a - b),
        [500, far],
      );
    }
  }
});

test('an empty log has no events', async (t) => {
  const { vault } = await testVault(t);
  await vault.db.write((writer) => writer.deleteFrom('audit_events').execute());
  for (const filter of [{}, { actor: 'x' }, { resource: 'x' }]) {
    assert.deepEqual(await listAuditEvents(vault.db.reader, vault.world, filter, { limit: 3 }), []);
  }
});

function fits({ actor, action, resource, since, until }: AuditFilter, event: AuditEventRow): boolean {
  return (
    (actor === undefined || event.actor === actor) &&
    (action === undefined || event.action === action) &&
    (resource === undefined || event.resource === resource) &&
    (since === undefined || event.at >= since) &&
    (until === undefined || event.at <= until)
  );
}
