/** The verification of the audit log: each way to change it shows, and at which event; what is allowed does not. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { hashIn, linkOf } from '../../../src/db/audit/audit-chain.ts';
import type { AuditEventRow } from '../../../src/db/audit/audit-events.ts';
import { localCli, system } from '../../../src/domain/audit/audit.ts';
import { makeCheckpoint, readCheckpoint } from '../../../src/domain/audit/audit-checkpoint.ts';
import { pruneAuditLog } from '../../../src/domain/audit/audit-retention.ts';
import { verifyChain } from '../../../src/domain/audit/audit-verification.ts';
import { outside, putOutside } from '../../harness/database/outside-database.ts';
import { testVault } from '../../harness/test-vault.ts';
import { setCounter } from './outside-counter.ts';

const day = 86_400_000;

/** A vault with so many downloads after its first events. */
async function logged(t: TestContext, count = 20) {
  const opened = await testVault(t);
  const { vault, dataDir } = opened;
  const download = (n: number) =>
    vault.audit.append({
      actor: { name: 'api-key:1:web', ip: '192.0.2.1' },
      action: 'certificate.download',
      resource: 'certificate:www',
      detail: { n },
    });
  for (let n = 0; n < count; n += 1) await download(n);
  const change = (sql: string) => outside(dataDir, (db) => db.exec(sql));
  const rows = () =>
    outside(dataDir, (db) => db.prepare('select * from audit_events order by id').all()) as AuditEventRow[];
  /** Removes the events up to this one, as the vault does after it has said so. */
  const pruneThrough = (id: number) => {
    const link = outside(dataDir, (db) =>
      db.prepare('select link from audit_events where id = ?').pluck().get(id),
    ) as Buffer;
    putOutside(dataDir, 'audit-pruned-through', `${id} ${link.toString('hex')}`);
    change(`delete from audit_events where id <= ${id}`);
  };
  const faults = async (...texts: readonly string[]) => {
    const checkpoints = await Promise.all(texts.map((text) => readCheckpoint(vault, text, 'it')));
    const { faults: found } = await verifyChain(vault, checkpoints);
    return found.map(({ id, kind }) => `${id} ${kind}`);
  };
  return { ...opened, download, change, pruneThrough, rows, faults };
}

test('an unmodified log is intact', async (t) => {
  const { vault, rows, faults } = await logged(t, 1200);
  assert.deepEqual(await faults(), []);
  const { events, first, last, faultCount } = await verifyChain(vault);
  assert.deepEqual([events, first, last?.id, faultCount], [rows().length, 1, rows().length, 0]);
  assert.deepEqual(last?.link, hashIn(rows().at(-1)?.link ?? Buffer.alloc(0)));
});

for (const [title, sql, expected, counter] of [
  ['an actor', "update audit_events set actor = 'api-key:2:db' where id = 10", ['10 changed']],
  ['a time', 'update audit_events set at = at + 1 where id = 10', ['10 changed']],
  ['a detail', "update audit_events set detail = '{}' where id = 10", ['10 changed']],
  ['an IP address removed', 'update audit_events set ip = null where id = 10', ['10 changed']],
  ['the first event', "update audit_events set action = 'x' where id = 1", ['1 changed']],
  [
    'a link',
    `update audit_events set link = x'${'00'.repeat(32)}' where id = 10`,
    ['10 changed', '11 changed'],
  ],
  ['a link emptied', "update audit_events set link = x'' where id = 10", ['10 unchained', '11 changed']],
  ['two events', "update audit_events set actor = 'x' where id in (5, 15)", ['5 changed', '15 changed']],
  ['an event removed', 'delete from audit_events where id = 10', ['11 missing']],
  ['several events removed', 'delete from audit_events where id between 10 and 12', ['13 missing']],
  ['the first events removed', 'delete from audit_events where id < 4', ['4 missing']],
  [
    'two events swapped',
    `update audit_events set id = 1000 where id = 10; update audit_events set id = 10 where id = 11;
     update audit_events set id = 11 where id = 1000`,
    ['10 changed', '11 changed', '12 changed'],
    21,
  ],
  [
    'an event removed and the rest renumbered',
    `delete from audit_events where id = 10;
     update audit_events set id = id - 1 where id > 10`,
    [...[10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20].map((id) => `${id} changed`), '21 missing'],
    20,
  ],
] as const) {
  test(`verification reports a change at its event: ${title}`, async (t) => {
    const { change, faults, rows, dataDir } = await logged(t);
    assert.equal(rows().length, 21);
    change(sql);
    if (counter !== undefined) setCounter(dataDir, 'audit_events', counter);
    assert.deepEqual(await faults(), expected);
  });
}

const randomLink = () => `x'${randomBytes(32).toString('hex')}'`;

test('verification reports an event inserted at the end', async (t) => {
  const { change, faults } = await logged(t);
  change(`insert into audit_events (id, at, actor, action, resource, detail, link)
    values (22, 1, 'a', 'b', 'c', '{}', ${randomLink()})`);
  assert.deepEqual(await faults(), ['22 changed']);
});

test('verification reports events cut off at the end, also after the next event', async (t) => {
  const { change, faults, download } = await logged(t);
  change('delete from audit_events where id > 15');
  assert.deepEqual(await faults(), ['16 missing']);
  await download(1);
  assert.deepEqual(await faults(), ['22 missing']);
});

/** Makes the chain anew from event 10 on, as anyone can who may write to the database: `tagOf` stands for the tags. */
function rechain(
  dataDir: string,
  rows: readonly AuditEventRow[],
  tagOf: (row: AuditEventRow) => Buffer,
): void {
  let link = hashIn(rows[8]?.link ?? Buffer.alloc(0));
  outside(dataDir, (db) => {
    const update = db.prepare('update audit_events set actor = ?, link = ? where id = ?');
    for (const row of rows.slice(9)) {
      const forged = { ...row, actor: row.id === 10 ? 'admin:eve' : row.actor };
      link = linkOf(link, forged);
      update.run(forged.actor, Buffer.concat([link, tagOf(row)]), row.id);
    }
  });
}

for (const [how, tagOf, kind] of [
  ['with the existing tags', ({ link }: AuditEventRow) => link.subarray(32), 'forged'],
  ['without tags', () => Buffer.alloc(0), 'untagged'],
] as const) {
  test(`verification reports a chain recomputed ${how}, also after the next event`, async (t) => {
    const { faults, rows, download, dataDir } = await logged(t);
    rechain(dataDir, rows(), tagOf);
    const after = [11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21].map((id) => `${id} changed`);
    assert.deepEqual(await faults(), [`10 ${kind}`, ...after, '21 mark']);
    await download(1);
    assert.deepEqual(await faults(), [`10 ${kind}`, ...after, '22 changed']);
  });
}

test('verification still reports events with an emptied link after the next event', async (t) => {
  const { change, faults, download } = await logged(t);
  change("update audit_events set actor = 'admin:eve', link = x'' where id >= 18");
  const found = ['18 unchained', '19 unchained', '20 unchained', '21 mark', '21 unchained'];
  assert.deepEqual((await faults()).toSorted(), found);
  await download(1);
  assert.deepEqual((await faults()).toSorted(), [...found.filter((one) => one !== '21 mark'), '22 changed']);
});

test('verification reports events cut off together with the counter, also after the next event', async (t) => {
  const { change, faults, download, rows, dataDir } = await logged(t);
  change('delete from audit_events where id > 15');
  setCounter(dataDir, 'audit_events', 15);
  assert.deepEqual(await faults(), ['16 missing']);
  await download(1);
  assert.equal(rows().at(-1)?.id, 22);
  assert.deepEqual(await faults(), ['22 missing']);
});

test('verification reports a log emptied with its counter and mark, also after the next events', async (t) => {
  const { change, faults, download, dataDir } = await logged(t);
  change("delete from audit_events; delete from settings where key = 'audit-mark'");
  setCounter(dataDir, 'audit_events', 0);
  assert.deepEqual(await faults(), ['0 mark']);
  await download(1);
  await download(2);
  // The process remembers where the log was, and continues there.
  assert.deepEqual(await faults(), ['1 mark', '22 missing']);
});

test('verification rejects a mark that is a copied event tag', async (t) => {
  const { change, faults, rows, dataDir } = await logged(t);
  const { id, link } = rows()[14] ?? { id: 0, link: Buffer.alloc(0) };
  // The tag of an event is none of a mark: it has a key of its own.
  change('delete from audit_events where id > 15');
  const tag = link.subarray(32).toString('hex');
  putOutside(dataDir, 'audit-mark', `${id} ${hashIn(link).toString('hex')} ${tag}`);
  assert.deepEqual(await faults(), ['15 mark']);
});

test('verification detects an older state restored with its mark only by a checkpoint', async (t) => {
  const { vault, faults, download, change, dataDir, rows } = await logged(t);
  const before = outside(dataDir, (db) =>
    db.prepare("select value from settings where key = 'audit-mark'").pluck().get(),
  ) as string;
  await download(1);
  const checkpoint = await makeCheckpoint(vault, localCli);
  assert.deepEqual(await faults(checkpoint), []);
  const { id } = await readCheckpoint(vault, checkpoint, 'it');
  assert.equal(id, rows().length);
  change('delete from audit_events where id > 21');
  putOutside(dataDir, 'audit-mark', before);
  assert.deepEqual(await faults(), [], 'only what stands beside the database or elsewhere shows it');
  assert.deepEqual(await faults(checkpoint), [`${id} checkpoint`]);
});

test('verification accepts pruned events and reports events removed without an audit.prune event', async (t) => {
  const { vault, world, faults, download, pruneThrough } = await logged(t);
  const early = await makeCheckpoint(vault, localCli);
  world.advance(40 * day);
  await download(1);
  assert.equal(await pruneAuditLog(vault, 30 * day), 22);
  assert.deepEqual(await faults(), []);
  assert.deepEqual(await faults(early), [], 'it was of the last event that went');
  const late = await makeCheckpoint(vault, localCli);
  world.advance(40 * day);
  await download(2);
  await download(3);
  assert((await pruneAuditLog(vault, 30 * day)) > 0);
  assert.deepEqual(await faults(), []);
  assert.deepEqual(await faults(early), ['22 checkpoint'], 'no longer there to be compared');
  assert.deepEqual(await faults(late), []);

  pruneThrough(25);
  assert.deepEqual(await faults(), ['25 unannounced']);
});

test('verification reports an event inserted before the first one or where the log was pruned', async (t) => {
  const { vault, world, faults, download, change } = await logged(t);
  const put = (id: number) =>
    change(`insert into audit_events (id, at, actor, action, resource, detail, link)
      values (${id}, 1, 'a', 'b', 'c', '{}', ${randomLink()})`);
  put(0);
  assert.deepEqual(await faults(), ['0 added']);
  change('delete from audit_events where id = 0');
  world.advance(40 * day);
  await download(1);
  assert.equal(await pruneAuditLog(vault, 30 * day), 21);
  assert.deepEqual(await faults(), []);
  put(5);
  assert.deepEqual(await faults(), ['5 added']);
});

test('verification reports no faults when events are pruned twice during its run', async (t) => {
  const { vault, pruneThrough } = await logged(t, 1300);
  const detail = { through: 900 };
  await vault.audit.append({ actor: system, action: 'audit.prune', resource: 'audit-log', detail });
  const { selectFrom } = vault.db.reader;
  // Before the second page, and before the look at what was pruned meanwhile.
  const left = [600, 900];
  let pages = 0;
  t.mock.method(vault.db.reader, 'selectFrom', (...args: Parameters<typeof selectFrom>) => {
    if (args[0] === 'audit_events') pages += 1;
    const through = pages > 1 ? left.shift() : undefined;
    if (through !== undefined) {
      pruneThrough(through);
    }
    return Reflect.apply(selectFrom, vault.db.reader, args);
  });
  assert.deepEqual((await verifyChain(vault)).faults, []);
  assert.deepEqual(left, []);
});

test('verification reports no faults when events are pruned and added during its run', async (t) => {
  const { vault, pruneThrough, download } = await logged(t, 1300);
  const detail = { through: 900 };
  await vault.audit.append({ actor: system, action: 'audit.prune', resource: 'audit-log', detail });
  const { selectFrom } = vault.db.reader;
  let pages = 0;
  let added: Promise<unknown> | undefined;
  t.mock.method(vault.db.reader, 'selectFrom', (...args: Parameters<typeof selectFrom>) => {
    if (args[0] === 'audit_events') pages += 1;
    if (args[0] === 'audit_events' && pages === 2) {
      pruneThrough(900);
      added ??= download(1);
    }
    return Reflect.apply(selectFrom, vault.db.reader, args);
  });
  const { events, first, faults } = await verifyChain(vault);
  assert(added);
  await added;
  assert.deepEqual(faults, []);
  assert.equal(first, 1);
  assert(events < 1000 && pages > 2, `${events} events, ${pages} pages`);
});

test('verification lists at most 100 faults and counts all of them', async (t) => {
  const { vault, change } = await logged(t, 300);
  change("update audit_events set actor = 'x'");
  const { faults, faultCount } = await verifyChain(vault);
  assert.deepEqual([faults.length, faultCount], [100, 301]);
});
