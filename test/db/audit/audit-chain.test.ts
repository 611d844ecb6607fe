/** The chain of the audit log: the permanent format of links, and that every writer goes on with the same chain. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import {
  type ChainedEvent,
  chainBeginning,
  hashIn,
  linkOf,
  tagState,
} from '../../../src/db/audit/audit-chain.ts';
import { insertAuditEvents } from '../../../src/db/audit/audit-insertion.ts';
import { Database } from '../../../src/db/database.ts';
import { migrations } from '../../../src/db/sqlite/migrations.ts';
import { bound, testIntegrity } from '../../harness/database/bound-database.ts';
import { type MadeDatabase, makeDatabase } from '../../harness/database/database-maker.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { ofFiles } from '../../harness/database/tested-engine.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { race, sourceUrl } from '../../harness/processes/racing-processes.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

const world = new TestWorld();
const zeros = chainBeginning.link;

const download: ChainedEvent = {
  id: 7,
  at: 1_795_000_000_123,
  actor: 'api-key:1:web',
  action: 'certificate.download',
  resource: 'certificate:wüw',
  detail: '{"artifact":"private.key","version":3}',
  ip: '192.0.2.1',
  request_id: null,
};

type Row = ChainedEvent & { readonly link: Buffer };

function rowsIn(dataDir: string): Row[] {
  return outside(dataDir, (db) => db.prepare('select * from audit_events order by id').all()) as Row[];
}

function assertChained(rows: readonly Row[]): void {
  let link = zeros;
  for (const row of rows) {
    link = linkOf(link, row);
    assert(link.equals(hashIn(row.link)), `event ${row.id}`);
  }
}

async function opened(t: TestContext): Promise<MadeDatabase> {
  const made = await makeDatabase(t);
  await bound(made.db);
  return made;
}

const { id: _, ...newEvent } = download;

test('a link is the SHA-256 of netstrings and equals the frozen value', () => {
  const text =
    `13:vault-audit-1,64:${'0'.repeat(64)},1:7,13:1795000000123,13:api-key:1:web,20:certificate.download,` +
    '16:certificate:wüw,38:{"artifact":"private.key","version":3},9:192.0.2.1,-';
  const expected = createHash('sha256').update(text).digest();
  assert.deepEqual(linkOf(zeros, download), expected);
  assert.equal(
    expected.toString('hex'),
    '03a7f84c46be0c24e47cd278d83a256260e7b29dd7f6809b8e45473db3cc97b2',
    'frozen: every log that was ever written depends on it',
  );
});

test('different events have different links, even if text only moves to the next field', () => {
  const text = fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom('1:a,', '-', ',', '2:', '\u0000'));
  const event = fc.record({
    id: fc.nat(30),
    at: fc.nat(30),
    ...{ actor: text, action: text, resource: text, detail: text },
    ip: fc.option(text),
    request_id: fc.option(text),
  });
  fc.assert(
    fc.property(event, event, (one, other) => {
      const isSame = JSON.stringify(one) === JSON.stringify(other);
      assert.equal(linkOf(zeros, one).equals(linkOf(zeros, other)), isSame);
    }),
    fuzzRuns(2000),
  );
  const [first, second] = [
    { ...download, actor: 'a', action: 'bc' },
    { ...download, actor: 'ab', action: 'c' },
  ];
  assert.notDeepEqual(linkOf(zeros, first), linkOf(zeros, second));
  assert.notDeepEqual(linkOf(zeros, download), linkOf(linkOf(zeros, download), download));
});

test('links verify against the stored events for any text', async (t) => {
  const { db, dataDir } = await opened(t);
  const odd = ['\u0000', 'a\u0000b', '\ud800 alone', '🔑', '\uffff', 'e\u0301', '\r\n'];
  const rows = odd.map((resource) => ({ ...newEvent, resource }));
  // As the vault does it: an engine may not keep every text as it is.
  await db.write(async (writer) => void writer.events.push(...rows));
  assert.equal(rowsIn(dataDir).length, odd.length);
  assertChained(rowsIn(dataDir));
});

test('events of batches of any size are stored in order with valid links', async (t) => {
  const { db, dataDir } = await opened(t);
  const counts = [0, 1, 3, 4, 5, 15, 16, 17, 22, 39];
  let at = 0;
  for (const count of counts) {
    const rows = Array.from({ length: count }, (_, index) => ({ ...newEvent, at: at + index + 1 }));
    at += count;
    await db.write((writer) => insertAuditEvents(writer, rows));
  }
  const rows = rowsIn(dataDir);
  assert.deepEqual(
    rows.map((row) => [row.id, row.at]),
    Array.from({ length: at }, (_, index) => [index + 1, index + 1]),
  );
  assertChained(rows);
});

test('a transaction that is rolled back leaves no gap', async (t) => {
  const { db, dataDir } = await opened(t);
  await db.write((writer) => insertAuditEvents(writer, [newEvent, newEvent]));
  await assert.rejects(
    db.write(async (writer) => {
      await insertAuditEvents(writer, [newEvent]);
      throw new Error('no');
    }),
    /^Error: no$/,
  );
  await db.write((writer) => insertAuditEvents(writer, [newEvent]));
  assert.deepEqual(
    rowsIn(dataDir).map(({ id }) => id),
    [1, 2, 3],
  );
  assertChained(rowsIn(dataDir));
});

const writer = `
  const { openDatabase } = await import(process.argv[1]);
  const { insertAuditEvents } = await import(process.argv[2]);
  const { realWorld } = await import(process.argv[3]);
  const { bound } = await import(process.argv[6]);
  const event = JSON.parse(process.argv[5]);
  const db = await bound(await openDatabase(process.argv[4], realWorld));
  await start();
  for (let n = 0; n < 40; n += 1) {
    await db.write((writer) => insertAuditEvents(writer, Array(1 + (n % 3)).fill(event)));
  }
  await db.close();
  process.stdout.write('done');
`;

test('processes that write at the same time write one chain', async (t) => {
  const { dataDir } = await opened(t);
  const harness = (name: string) => new URL(`../../harness/database/${name}`, import.meta.url).href;
  const said = await race(t, 3, writer, [
    harness('database-maker.ts'),
    ...['db/audit/audit-insertion.ts', 'base/world.ts'].map(sourceUrl),
    ...[dataDir, JSON.stringify(newEvent), harness('bound-database.ts')],
  ]);
  assert.deepEqual(said, Array(3).fill('done'));
  assert.equal(rowsIn(dataDir).length, 3 * 79);
  assertChained(rowsIn(dataDir));
});

/** Adds events as they were before there were links. */
function insertAsBefore(dataDir: string, count: number): void {
  outside(dataDir, (db) =>
    db.exec(`insert into audit_events (id, at, actor, action, resource, detail)
      with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
      select n + (select coalesce(max(id), 0) from audit_events), n, 'a', 'b', 'resource ' || n, '{}' from numbers`),
  );
}

test('the migration chains existing events and adds no tags', ofFiles('its older schemas'), async (t) => {
  const dataDir = tempDir(t);
  const path = join(dataDir, 'vault.db');
  const { '0006-audit-chain': chain, ...before } = migrations;
  assert(chain);
  const earlier = Object.fromEntries(Object.entries(before).filter(([name]) => name < '0006'));
  await (await Database.open(path, world, { migrations: earlier })).close();
  insertAsBefore(dataDir, 1001);
  await (await Database.open(path, world)).close();
  const rows = rowsIn(dataDir);
  assert.equal(rows.length, 1001);
  assertChained(rows);
  assert.deepEqual([...new Set(rows.map(({ link }) => tagState(testIntegrity, link)))], ['untagged']);
});

test('every written event has a tag', async (t) => {
  const { db, dataDir } = await opened(t);
  await db.write((writer) => insertAuditEvents(writer, Array(23).fill(newEvent)));
  const states = rowsIn(dataDir).map(({ link }) => tagState(testIntegrity, link));
  assert.deepEqual(states, Array(23).fill('tagged'));
});

test('events without a link stay without one, and the next event continues the last link', async (t) => {
  const { db, dataDir } = await opened(t);
  await db.write((writer) => insertAuditEvents(writer, [newEvent]));
  insertAsBefore(dataDir, 3);
  await db.write((writer) => insertAuditEvents(writer, [newEvent]));
  const rows = rowsIn(dataDir);
  assert.deepEqual(
    rows.map(({ id, link }) => [id, link.length]),
    [
      [1, 64],
      [2, 0],
      [3, 0],
      [4, 0],
      [5, 64],
    ],
  );
  const [first, , , , last] = rows;
  assert(first && last);
  assert.deepEqual(hashIn(last.link), linkOf(hashIn(first.link), last));
});

test('recording is rejected while the integrity key is unknown', async (t) => {
  const { db, dataDir } = await opened(t);
  db.integrity = undefined;
  await assert.rejects(
    db.write((writer) => insertAuditEvents(writer, [newEvent])),
    /has no integrity key yet/,
  );
  assert.deepEqual(rowsIn(dataDir), []);
});

test('if the newest events were removed, a gap stays', async (t) => {
  const { db, dataDir } = await opened(t);
  await db.write((writer) => insertAuditEvents(writer, Array(5).fill(newEvent)));
  outside(dataDir, (other) => other.exec('delete from audit_events where id > 3'));
  await db.write((writer) => insertAuditEvents(writer, [newEvent]));
  assert.deepEqual(
    rowsIn(dataDir).map(({ id }) => id),
    [1, 2, 3, 6],
  );
});
