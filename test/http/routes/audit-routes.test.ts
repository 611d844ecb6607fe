/** The audit log over HTTP: newest first, filtered, page by page, and as files that no spreadsheet runs. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { StorageError } from '../../../src/base/storage-error.ts';
import { insertAuditEvents } from '../../../src/db/audit/audit-insertion.ts';
import { administration, allPages } from '../../harness/http/administration.ts';

const path = '/api/v1/audit-events';
const noon = Date.parse('2026-11-20T12:00:00Z');

type Event = { id: number; at: string; actor: string; action: string; resource: string; detail: object };

/** Events a minute apart, by two people about three things. */
async function prepared(t: Parameters<typeof administration>[0], count = 30) {
  const admin = await administration(t);
  const rows = Array.from({ length: count }, (_, index) => ({
    at: noon + index * 60_000,
    actor: index % 2 === 0 ? 'admin:alice' : 'api-key:1:web',
    action: index % 3 === 0 ? 'certificate.download' : 'certificate.update',
    resource: `certificate:c${index % 5}`,
    detail: JSON.stringify({ index }),
    ip: '192.0.2.1',
    request_id: `r-${index}`,
  }));
  await admin.server.vault.db.write((writer) => insertAuditEvents(writer, rows));
  const indexes = async (query: string) => {
    const events = await admin.expect<{ detail: { index?: number } }[]>(200, 'GET', `${path}?${query}`);
    return events.flatMap(({ detail }) => detail.index ?? []);
  };
  return { admin, indexes };
}

const below = (count: number) => Array.from({ length: count }, (_, index) => count - 1 - index);

suite('the audit log', () => {
  test('lists the newest event first, and each event once across pages of any size', async (t) => {
    const { admin } = await prepared(t);
    const { all, pages } = await allPages<Event>(
      admin,
      `${path}?limit=7&resource=certificate%3Ac0&actor=admin:alice`,
    );
    assert.deepEqual([all.length, pages], [3, 1]);
    for (const limit of [7, 30, 31, 32]) {
      const every = await allPages<Event & { detail: { index: number } }>(admin, `${path}?limit=${limit}`);
      assert.deepEqual(
        every.all.map(({ detail }) => detail.index),
        [...below(30), undefined],
        'and the first of all, by which the vault was made',
      );
      assert.equal(every.pages, Math.ceil(31 / limit), `no empty page at the end of ${limit}`);
      assert.deepEqual(Object.keys(every.all[0] ?? {}).toSorted(), [
        ...['action', 'actor', 'at', 'detail', 'id', 'ip', 'request_id', 'resource'],
      ]);
    }
  });

  test('can be filtered by actor, action, resource and time, and by combinations', async (t) => {
    const { indexes } = await prepared(t);
    const all = below(30);
    assert.deepEqual(
      await indexes('actor=admin:alice'),
      all.filter((index) => index % 2 === 0),
    );
    assert.deepEqual(
      await indexes('action=certificate.download'),
      all.filter((index) => index % 3 === 0),
    );
    assert.deepEqual(
      await indexes('resource=certificate:c4'),
      all.filter((index) => index % 5 === 4),
    );
    assert.deepEqual(await indexes('since=2026-11-20T12:27:00Z'), [29, 28, 27]);
    assert.deepEqual(await indexes('until=2026-11-20T13:02:00%2B01:00'), [2, 1, 0]);
    const span = 'since=2026-11-20T12:05:00Z&until=2026-11-20T12:10:00Z';
    assert.deepEqual(await indexes(`${span}&actor=admin:alice&action=certificate.download`), [6]);
    assert.deepEqual(await indexes('since=2026-11-22T00:00:00Z'), []);
    assert.deepEqual(await indexes('actor=admin:ali'), []);
  });

  test('escapes control and bidirectional characters in JSON', async (t) => {
    const admin = await administration(t);
    const resource = 'GET /\u009b2J\u202e\u2028\u007f/é';
    const row = { at: noon, actor: 'a', action: 'b', detail: '{}', ip: null, request_id: null };
    await admin.server.vault.db.write((writer) => insertAuditEvents(writer, [{ ...row, resource }]));
    const { text } = await admin.ask('GET', path);
    assert.match(text, /^[ -~é]+$/);
    assert.equal((JSON.parse(text) as Event[])[0]?.resource, resource);
  });

  test('keeps its filters from page to page', async (t) => {
    const { admin } = await prepared(t);
    const query = 'limit=2&since=2026-11-20T12:00:00Z&until=2026-11-20T12:20:00Z&actor=admin:alice';
    const { all, pages } = await allPages<Event & { detail: { index: number } }>(admin, `${path}?${query}`);
    assert.equal(pages, 6);
    assert.deepEqual(
      all.map(({ detail }) => detail.index),
      below(21).filter((index) => index % 2 === 0),
    );
  });

  test('finds events by time even if the clock was set back while they were recorded', async (t) => {
    const { admin, indexes } = await prepared(t, 3);
    const late = { actor: 'a', action: 'b', resource: 'c', ip: null, request_id: null };
    const rows = [{ ...late, at: noon - 3_600_000, detail: '{"index":7}' }];
    await admin.server.vault.db.write((writer) => insertAuditEvents(writer, rows));
    assert.deepEqual(await indexes('until=2026-11-20T11:30:00Z'), [7]);
    assert.deepEqual(await indexes('since=2026-11-20T12:02:00Z'), [2]);
  });

  test('rejects invalid times and unknown parameters', async (t) => {
    const { admin } = await prepared(t, 1);
    for (const query of ['since=yesterday', 'until=2026-11-31T00:00:00Z', 'who=alice', 'after=0']) {
      await admin.expect(400, 'GET', `${path}?${query}`);
      await admin.expect(400, 'GET', `${path}/export?${query}`);
    }
    await admin.expect(400, 'GET', `${path}/export?format=xlsx`);
  });
});

suite('the audit log as a file', () => {
  test('has every event that fits, as one JSON object a line', async (t) => {
    const { admin } = await prepared(t, 1234);
    const told = await admin.ask('GET', `${path}/export?format=jsonl`);
    assert.equal(told.headers.get('Content-Type'), 'application/jsonl');
    assert.equal(told.headers.get('Content-Disposition'), 'attachment; filename="audit-events.jsonl"');
    const lines = told.text.trimEnd().split('\n');
    const indexes = lines.map((line) => JSON.parse(line).detail.index);
    assert.deepEqual(indexes, [...below(1234), undefined]);
    const some = await admin.ask('GET', `${path}/export?format=jsonl&resource=certificate:c0`);
    assert.equal(some.text.trimEnd().split('\n').length, 247);
    const none = await admin.ask('GET', `${path}/export?format=jsonl&actor=nobody`);
    assert.deepEqual([none.status, none.text], [200, '']);
  });

  test('quotes CSV fields and escapes spreadsheet formulas', async (t) => {
    const admin = await administration(t);
    const row = { at: noon, actor: 'admin:a', action: 'access.refuse', ip: null, request_id: 'r-1' };
    const resources = ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', 'GET /a,"b"', "it's", 'plain'];
    const rows = resources.map((resource) => ({ ...row, resource, detail: '{"a":1}' }));
    await admin.server.vault.db.write((writer) => insertAuditEvents(writer, rows));
    const told = await admin.ask('GET', `${path}/export`);
    assert.equal(told.headers.get('Content-Type'), 'text/csv');
    const lines = told.text.split('\r\n');
    assert.equal(lines[0], 'id,at,actor,action,resource,detail,ip,request_id,hash');
    const cells = lines.slice(1, -1).map((line) => line.split(',access.refuse,')[1]?.split(',"{""a""')[0]);
    assert.deepEqual(cells.toReversed(), [
      undefined,
      ...['"\'=1+1"', '"\'+1"', '"\'-1"', '"\'@SUM(A1)"', '"\'\tx"', '"GET /a,""b"""', '"it\'s"', 'plain'],
    ]);
    assert.match(lines.at(-3) ?? '', /^\d+,2026-11-20T12:00:00Z,admin:a,.*,"\{""a"":1\}",,r-1,[0-9a-f]{64}$/);
  });

  test('aborts the response when a database read fails, and logs the failure', async (t) => {
    const { admin } = await prepared(t, 1100);
    const { db } = admin.server.vault;
    let asked = 0;
    const { selectFrom } = db.reader;
    t.mock.method(db.reader, 'selectFrom', (...args: Parameters<typeof selectFrom>) => {
      asked += 1;
      if (asked > 2) throw new StorageError('the database is damaged');
      return Reflect.apply(selectFrom, db.reader, args);
    });
    await assert.rejects(admin.ask('GET', `${path}/export`), /terminated|fetch failed/);
    assert.match(admin.server.log.lines.join('\n'), /response stream failed/);
  });

  test('returns only headers for HEAD', async (t) => {
    const { admin } = await prepared(t, 3);
    const told = await admin.ask('HEAD', `${path}/export`);
    assert.deepEqual([told.status, told.text, told.headers.get('Content-Type')], [200, '', 'text/csv']);
  });
});
