/** The job that prunes the audit log: once an hour it looks, says what it did, and goes on after what went wrong. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { StorageError } from '../../src/base/storage-error.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { deleteCertificate } from '../../src/domain/certificates/certificates.ts';
import { runPruning } from '../../src/jobs/pruning.ts';
import { outside } from '../harness/database/outside-database.ts';
import { eventsOf } from '../harness/http/fixtures.ts';
import { makeCertificate } from '../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../harness/test-vault.ts';
import { TestWorld } from '../harness/test-world.ts';

const day = 86_400_000;

type Opened = Awaited<ReturnType<typeof testVault<TestWorld>>>;

/**
 * Runs the job on a vault: `days` pass one by one, and the job looks in each; `ids` are the first event and how many
 * there are.
 */
function running(t: TestContext, { vault, world, log, dataDir }: Opened, keepFor: number) {
  const stop = new AbortController();
  const ended = runPruning(
    vault,
    { auditEvents: keepFor, deletedCertificates: 30 * day, versions: 10 },
    stop.signal,
  );
  t.after(() => stop.abort());
  return {
    days: async (count: number) => {
      for (let passed = 0; passed < count; passed += 1) {
        await world.sleeping(1);
        world.advance(day);
        // The one that wakes is counted as asleep until then.
        await world.turn();
      }
      await world.sleeping(1);
    },
    told: async (count: number) => {
      while (log.lines.length < count) {
        t.signal.throwIfAborted();
        await world.turn();
      }
      return log.lines.at(-1) ?? '';
    },
    ids: () => outside(dataDir, (db) => db.prepare('select min(id), count(*) from audit_events').raw().get()),
    stop: () => {
      stop.abort();
      return ended;
    },
  };
}

test('expired audit events are pruned, and a failed pruning is retried after an hour', async (t) => {
  const opened = await testVault(t);
  const { vault, world, log, dataDir } = opened;
  const { days, told, stop } = running(t, opened, 8 * day);
  await days(9);
  assert.deepEqual([eventsOf(dataDir, 'audit.prune'), log.lines], [[], []]);
  await days(1);
  assert.match(await told(1), /^\{"level":"info","events":1,"message":"expired audit events pruned"\}$/);
  assert.equal(eventsOf(dataDir, 'audit.prune').length, 1);

  await days(9);
  const failing = t.mock.method(vault.db, 'write', () =>
    Promise.reject(new StorageError('the disk is full')),
  );
  world.advance(day);
  assert.match(await told(2), /the disk is full.*pruning failed; retrying in an hour/);
  failing.mock.restore();
  await world.sleeping(1);
  world.advance(day / 24);
  assert.match(await told(3), /"events":1/);
  assert.equal(eventsOf(dataDir, 'audit.prune').length, 1, 'of two, the first is gone');
  await stop();
});

test('pruning pauses when the clock jumps years ahead and resumes a week after it is set right', async (t) => {
  const opened = await testVault(t);
  const { vault, world, dataDir } = opened;
  const { days, told, ids, stop } = running(t, opened, 30 * day);
  const event = {
    actor: { name: 'a' },
    action: 'certificate.download',
    resource: 'certificate:www',
  } as const;
  await Promise.all(Array.from({ length: 20 }, () => vault.audit.append(event)));
  await days(10);
  assert.deepEqual(ids(), [1, 21]);
  world.advance(3650 * day);
  assert.match(
    await told(1),
    /"level":"warn","resumes_at":"2036-12-\d\dT12:00:00Z","message":"clock jumped; pruning paused"/,
  );
  await days(6);
  assert.deepEqual(ids(), [1, 21], 'six days later, still with the wrong clock');
  // The clock of the test wakes nobody when it is set back.
  await stop();
  world.advance(-3650 * day);
  const right = running(t, opened, 30 * day);
  await right.told(2);
  await right.days(6);
  assert.deepEqual(ids(), [1, 21]);
  await right.days(10);
  assert.match(await told(3), /"events":21/);
  assert.equal(eventsOf(dataDir, 'audit.prune').length, 1);
});

test('a server that starts with a clock years ahead removes nothing for a week', async (t) => {
  const first = await testVault(t);
  const running1 = running(t, first, 30 * day);
  await running1.days(10);
  await running1.stop();
  await first.close();
  const again = await testVault(t, {
    dataDir: first.dataDir,
    world: new TestWorld(first.world.now() + 3650 * day),
  });
  const { days, ids, told } = running(t, again, 30 * day);
  assert.match(await told(1), /clock jumped; pruning paused/);
  await days(6);
  assert.deepEqual(ids(), [1, 1]);
});

test('a server that is off for three days at a time prunes as if it ran', async (t) => {
  const first = await testVault(t);
  let { world } = first;
  await first.close();
  for (let start = 0; start < 12; start += 1) {
    world = new TestWorld(world.now() + 3 * day);
    const opened = await testVault(t, { dataDir: first.dataDir, world });
    const { days, stop } = running(t, opened, 30 * day);
    await days(0);
    await stop();
    await opened.close();
  }
  assert.equal(eventsOf(first.dataDir, 'audit.prune').length, 1);
});

test('deleted certificates are purged with their versions after 30 days and not before', async (t) => {
  const opened = await testVault(t);
  const { vault, dataDir } = opened;
  await makeCertificate(vault, 'web');
  await deleteCertificate(vault, localCli, 'web', { force: false });
  const { days, told } = running(t, opened, 3650 * day);
  const kept = () =>
    outside(dataDir, (db) => db.prepare('select count(*) from certificate_versions').pluck().get());
  await days(30);
  assert.equal(kept(), 1);
  await days(1);
  assert.match(await told(1), /"certificates":1,"message":"expired deleted certificates purged"/);
  assert.equal(kept(), 0);
  assert.equal(eventsOf(dataDir, 'certificate.purge').length, 1);
});

test('versions that expired a month ago are pruned except for the last ten and the current one', async (t) => {
  const opened = await testVault(t);
  const { vault, dataDir, world } = opened;
  await makeCertificate(vault, 'web');
  const [first] = await vault.db.reader.selectFrom('certificate_versions').selectAll().execute();
  assert(first);
  const { id: _, ...row } = first;
  await vault.db.write(async (writer) => {
    for (let version = 2; version <= 80; version += 1) {
      const notAfter = world.now() - (version <= 60 ? 31 : 20) * day;
      await writer
        .insertInto('certificate_versions')
        .values({ ...row, version, not_after: notAfter })
        .execute();
    }
    // A version was made current by hand.
    await writer.updateTable('certificates').set({ current_version: 55 }).execute();
  });
  const { days, told } = running(t, opened, 3650 * day);
  const left = () =>
    outside(dataDir, (db) =>
      db.prepare('select version from certificate_versions order by version').pluck().all(),
    ) as number[];
  // The clock is believed after a week.
  await days(8);
  // Version 1 is valid, 61 to 70 expired less than a month ago, and 71 to 80 are the last ten.
  assert.match(await told(1), /"versions":58,"message":"superseded versions pruned"/);
  assert.deepEqual(left(), [1, 55, ...Array.from({ length: 20 }, (_each, index) => 61 + index)]);
  assert.equal(eventsOf(dataDir, 'certificate.prune').length, 2);
  await days(4);
  assert.deepEqual(left(), [1, 55, ...Array.from({ length: 10 }, (_each, index) => 71 + index)]);
});
