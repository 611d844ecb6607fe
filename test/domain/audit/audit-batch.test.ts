/** The audit batch: what arrives together is committed together, and nobody goes on before it is durable. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { StorageError } from '../../../src/base/storage-error.ts';
import type { AuditEvent } from '../../../src/domain/audit/audit.ts';
import { type TestVault, testVault } from '../../harness/test-vault.ts';

const event = (n: number): AuditEvent => ({
  actor: { name: `api-key:${n}:deploy`, ip: '192.0.2.1', requestId: `request ${n}` },
  action: 'certificate.download',
  resource: 'certificate:www',
  detail: { n },
});

/** A connection of another process, as far as SQLite can tell. */
function outside(t: { after: (work: () => void) => void }, { dataDir }: TestVault): BetterSqlite3.Database {
  const other = new BetterSqlite3(join(dataDir, 'vault.db'));
  t.after(() => other.close());
  return other;
}

const downloads = (database: BetterSqlite3.Database) =>
  database
    .prepare("select actor from audit_events where action = 'certificate.download' order by id")
    .pluck()
    .all();

test('an event is there, whole, as soon as its promise is kept', async (t) => {
  const opened = await testVault(t);
  const other = outside(t, opened);
  await opened.vault.audit.append(event(1));
  const row = other.prepare("select * from audit_events where action = 'certificate.download'").get();
  const { id, link, ...rest } = row as { id: number; link: Buffer };
  assert(id > 0);
  // The hash, and the tag over it.
  assert.equal(link.length, 64);
  assert.deepEqual(rest, {
    at: opened.world.now(),
    actor: 'api-key:1:deploy',
    action: 'certificate.download',
    resource: 'certificate:www',
    detail: '{"n":1}',
    ip: '192.0.2.1',
    request_id: 'request 1',
  });
});

test('the events of one turn are one transaction, in the order in which they came', async (t) => {
  const opened = await testVault(t);
  const append = t.mock.method(opened.vault.db, 'append');
  await Promise.all([1, 2, 3, 4, 5].map((n) => opened.vault.audit.append(event(n))));
  assert.equal(append.mock.callCount(), 1);
  assert.deepEqual(
    downloads(outside(t, opened)),
    [1, 2, 3, 4, 5].map((n) => `api-key:${n}:deploy`),
  );
});

test('events of different turns are different transactions', async (t) => {
  const { vault } = await testVault(t);
  const append = t.mock.method(vault.db, 'append');
  await vault.audit.append(event(1));
  await vault.audit.append(event(2));
  assert.equal(append.mock.callCount(), 2);
});

test('more events than one transaction should have are all recorded', async (t) => {
  const opened = await testVault(t);
  const append = t.mock.method(opened.vault.db, 'append');
  await Promise.all(Array.from({ length: 1100 }, (_, n) => opened.vault.audit.append(event(n))));
  assert.equal(append.mock.callCount(), 3);
  assert.equal(downloads(outside(t, opened)).length, 1100);
});

test('no request continues while the transaction waits for a lock', async (t) => {
  const opened = await testVault(t);
  const other = outside(t, opened);
  other.exec('begin immediate');
  let isRecorded = false;
  const recorded = opened.vault.audit.append(event(1)).then(() => {
    isRecorded = true;
  });
  await opened.world.sleeping(1);
  await opened.world.turn();
  assert.equal(isRecorded, false);
  other.exec('commit');
  opened.world.advance(5);
  await recorded;
});

test('where the events cannot be recorded all of them are refused, and the next ones work', async (t) => {
  const opened = await testVault(t);
  const { audit } = opened.vault;
  const other = outside(t, opened);
  other.exec(`create trigger full before insert on audit_events
    when new.resource = 'certificate:bad' begin select raise(abort, 'no room'); end`);
  const bad = { ...event(2), resource: 'certificate:bad' };
  const outcomes = await Promise.allSettled([event(1), bad, event(3)].map((one) => audit.append(one)));
  for (const outcome of outcomes) {
    assert.equal(outcome.status, 'rejected');
    assert(outcome.reason instanceof StorageError);
    assert.match(String(outcome.reason.cause), /no room/);
  }
  assert.deepEqual(downloads(other), []);
  await audit.append(event(4));
  assert.deepEqual(downloads(other), ['api-key:4:deploy']);
});

test('draining waits until nothing waits any more, and is quick if nothing does', async (t) => {
  const opened = await testVault(t);
  const { audit } = opened.vault;
  await audit.drain();
  const appended = [audit.append(event(1))];
  appended.push(opened.world.turn().then(() => audit.append(event(2))));
  await opened.world.turn();
  await audit.drain();
  assert.equal(downloads(outside(t, opened)).length, 2);
  await Promise.all(appended);
});
