/**
 * The jobs that watch the end of the audit log: a log that steps back is reported, and its end is written to the server
 * log.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../src/base/duration.ts';
import { StorageError } from '../../src/base/storage-error.ts';
import { localCli, record } from '../../src/domain/audit/audit.ts';
import { pruneAuditLog } from '../../src/domain/audit/audit-retention.ts';
import { runLogEndReport, runLogEndWatcher } from '../../src/jobs/periodic-jobs.ts';
import { outside, putOutside } from '../harness/database/outside-database.ts';
import { testVault } from '../harness/test-vault.ts';

async function watched(t: TestContext) {
  const opened = await testVault(t);
  const { vault, world, dataDir } = opened;
  const stop = new AbortController();
  t.after(() => stop.abort());
  const event = () =>
    vault.db.write(async (writer) => {
      record(
        writer,
        { actor: localCli, action: 'certificate.update', resource: 'certificate:web' },
        world.now(),
      );
    });
  const last = () =>
    outside(dataDir, (db) => db.prepare('select max(id) from audit_events').pluck().get()) as number;
  const mark = () =>
    String(
      outside(dataDir, (db) =>
        db.prepare("select value from settings where key = 'audit-mark'").pluck().get(),
      ),
    );
  /** Deletes what follows the event, and puts back the mark of its time. */
  const cutTo = (id: number, saved: string) => {
    outside(dataDir, (db) => db.prepare('delete from audit_events where id > ?').run(id));
    putOutside(dataDir, 'audit-mark', saved);
  };
  return { ...opened, signal: stop.signal, event, last, mark, cutTo };
}

test('a log that loses its newest events is reported within a minute, and once', async (t) => {
  const { vault, world, log, signal, event, last, mark, cutTo } = await watched(t);
  const [id, saved] = [last(), mark()];
  await event();
  await event();
  void runLogEndWatcher(vault, signal);
  await world.sleeping(1);
  cutTo(id, saved);
  for (let pass = 0; pass < 2; pass += 1) {
    world.advance(minute);
    await world.turn();
    await world.sleeping(1);
  }
  const reports = log.lines.filter((line) => line.includes('stepped back'));
  assert.deepEqual(reports, [
    `{"level":"error","from":${id + 1},"to":${id + 2},"message":"audit log stepped back: run \\"vault audit verify\\""}`,
  ]);
});

test('events of other processes and pruning are not reported as a step back', async (t) => {
  const { vault, world, log, dataDir, signal, event } = await watched(t);
  await event();
  void runLogEndWatcher(vault, signal);
  await world.sleeping(1);
  const other = await testVault(t, { dataDir, world });
  await other.vault.db.write(async (writer) => {
    record(
      writer,
      { actor: localCli, action: 'certificate.update', resource: 'certificate:web' },
      world.now(),
    );
  });
  // The event that this process saw last is pruned.
  world.advance(3 * day);
  await pruneAuditLog(other.vault, day);
  await world.turn();
  await world.sleeping(1);
  await event();
  world.advance(minute);
  await world.turn();
  await world.sleeping(1);
  assert.deepEqual(log.lines, []);
});

test('the server log has the end of the audit log at the start and every hour, even after a failure', async (t) => {
  const { vault, world, log, signal, event, last, mark } = await watched(t);
  const line = () =>
    `{"level":"info","event":${last()},"hash":"${mark().split(' ')[1]}","message":"end of the audit log"}`;
  const first = line();
  void runLogEndReport(vault, signal);
  await world.sleeping(1);
  await event();
  assert.deepEqual(log.lines, [first]);
  const failing = t.mock.method(vault.db, 'observeLog', () =>
    Promise.reject(new StorageError('the disk is full')),
  );
  const pass = async () => {
    world.advance(hour);
    await world.turn();
    await world.sleeping(1);
  };
  await pass();
  assert.match(
    log.lines[1] ?? '',
    /"level":"warn".*failed to read the end of the audit log; retrying in an hour/,
  );
  failing.mock.restore();
  await pass();
  assert.deepEqual(log.lines.slice(2), [line()]);
});
