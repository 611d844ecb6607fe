/** The audit batch: what arrives together is committed together, and nobody goes on before it is durable. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StorageError } from '../../../src/base/storage-error.ts';
import type { AuditEvent } from '../../../src/domain/audit/audit.ts';
import { holdLog, lockAwaited, outside, refuse } from '../../harness/database/outside-database.ts';
import { testVault } from '../../harness/test-vault.ts';

const event = (n: number): AuditEvent => ({
  actor: { name: `api-key:${n}:deploy`, ip: '192.0.2.1', requestId: `request ${n}` },
  action: 'certificate.download',
  resource: 'certificate:www',
  detail: { n },
});

const downloads = ({ dataDir }: { readonly dataDir: string }) =>
  outside(dataDir, (db) =>
    db
      .prepare("select actor from audit_events where action = 'certificate.download' order by id")
      .pluck()
      .all(),
  );

test('an event is stored completely when its promise resolves', async (t) => {
  const opened = await testVault(t);
  await opened.vault.audit.append(event(1));
  const row = outside(opened.dataDir, (db) =>
    db.prepare("select * from audit_events where action = 'certificate.download'").get(),
  );
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

test('events appended in one turn are written in one transaction, in order', async (t) => {
  const opened = await testVault(t);
  const append = t.mock.method(opened.vault.db, 'append');
  await Promise.all([1, 2, 3, 4, 5].map((n) => opened.vault.audit.append(event(n))));
  assert.equal(append.mock.callCount(), 1);
  assert.deepEqual(
    downloads(opened),
    [1, 2, 3, 4, 5].map((n) => `api-key:${n}:deploy`),
  );
});

test('events appended in different turns are written in separate transactions', async (t) => {
  const { vault } = await testVault(t);
  const append = t.mock.method(vault.db, 'append');
  await vault.audit.append(event(1));
  await vault.audit.append(event(2));
  assert.equal(append.mock.callCount(), 2);
});

test('1100 events of one turn are written in batches of at most 16, and all are recorded', async (t) => {
  const opened = await testVault(t);
  const append = t.mock.method(opened.vault.db, 'append');
  await Promise.all(Array.from({ length: 1100 }, (_, n) => opened.vault.audit.append(event(n))));
  const parts = append.mock.calls.map(({ arguments: [events] }) => events.length);
  assert.ok(Math.max(...parts) <= 16, `parts of ${parts}`);
  assert.equal(downloads(opened).length, 1100);
});

test('append does not resolve while the transaction waits for a lock', async (t) => {
  const opened = await testVault(t);
  const other = holdLog(opened.dataDir);
  let isRecorded = false;
  const recorded = opened.vault.audit.append(event(1)).then(() => {
    isRecorded = true;
  });
  await lockAwaited(opened);
  await opened.world.turn();
  assert.equal(isRecorded, false);
  other.release();
  opened.world.advance(5);
  await recorded;
});

test('all events of a batch are rejected when one cannot be written, and later events are recorded', async (t) => {
  const opened = await testVault(t);
  const { audit } = opened.vault;
  const when = "new.resource = 'certificate:bad'";
  refuse(opened.dataDir, 'insert', 'audit_events', { when, message: 'no room' });
  const bad = { ...event(2), resource: 'certificate:bad' };
  const outcomes = await Promise.allSettled([event(1), bad, event(3)].map((one) => audit.append(one)));
  for (const outcome of outcomes) {
    assert.equal(outcome.status, 'rejected');
    assert(outcome.reason instanceof StorageError);
    assert.match(String(outcome.reason.cause), /no room/);
  }
  assert.deepEqual(downloads(opened), []);
  await audit.append(event(4));
  assert.deepEqual(downloads(opened), ['api-key:4:deploy']);
});

test('drain waits until all pending events are recorded, and returns when no event is pending', async (t) => {
  const opened = await testVault(t);
  const { audit } = opened.vault;
  await audit.drain();
  const appended = [audit.append(event(1))];
  appended.push(opened.world.turn().then(() => audit.append(event(2))));
  await opened.world.turn();
  await audit.drain();
  assert.equal(downloads(opened).length, 2);
  await Promise.all(appended);
});
