/**
 * Looking through many audit events, over the blocks by which they are indexed: what is found is what a look at each
 * finds.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditEventRow } from '../../../src/db/audit/audit-events.ts';
import { type AuditFilter, listAuditEvents } from '../../../src/db/audit/audit-search.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { testVault } from '../../harness/test-vault.ts';

const count = 9000;
const start = Date.parse('2026-01-01T00:00:00Z');

/** One actor does nearly all, some do a little, one did something once; a day has a thousand events. */
const columns = `${start} + n * cast(86400 as bigint),
  case when n in (17, 8003) then 'rare' when n % 50 = 0 then 'some ' || (n % 3) else 'busy' end,
  'certificate:' || (n % 400), '{}'`;

/** Adds events by one statement, with an action in SQL: through the chain, tens of thousands take most of a minute. */
function insertEvents(dataDir: string, count: number, action: string): void {
  outside(dataDir, (db) =>
    db.exec(`insert into audit_events (id, at, actor, resource, detail, action)
      with recursive numbers (n) as (select 0 union all select n + 1 from numbers where n < ${count - 1})
      select n + 1 + (select coalesce(max(id), 0) from audit_events), ${columns}, ${action} from numbers`),
  );
}

test('pages by every filter contain the events of a full scan, in both orders', async (t) => {
  const { vault, dataDir } = await testVault(t);
  const { reader } = vault.db;
  insertEvents(dataDir, count, "case when n % 7 = 0 then 'access.refuse' else 'certificate.download' end");
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
        after = page.length === limit && upwards.length < 100 * limit ? upwards.at(-1) : undefined;
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

test('a search over many events yields to other work every few thousand events', async (t) => {
  const { vault, dataDir } = await testVault(t);
  insertEvents(dataDir, 40_000, "case when n = 5 then 'rare' else 'usual' end");
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
  const row = { at: start, actor: 'rare', action: 'x', resource: 'x', detail: '{}', link: Buffer.alloc(0) };
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
