/** The scheduler of backups: makes what is due, goes on after failures, and lets readiness tell of them. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { day, minute } from '../../src/base/duration.ts';
import { putSetting } from '../../src/db/tables/settings.ts';
import { system } from '../../src/domain/audit/audit.ts';
import type { BackupOrder } from '../../src/domain/backup/backup.ts';
import { checkBackup } from '../../src/domain/backup/backup-file.ts';
import { type BackupPlan, backUpByPlan } from '../../src/domain/backup/backup-schedule.ts';
import { readiness } from '../../src/domain/doctor/readiness.ts';
import { backupFindings } from '../../src/domain/doctor/upkeep-findings.ts';
import { ensureIdentity, ensureVaultIdentity } from '../../src/domain/instance/vault-identity.ts';
import type { Vault } from '../../src/domain/vault.ts';
import { runBackupScheduler } from '../../src/jobs/backup-scheduler.ts';
import { addCertificates } from '../harness/database/marked-vault.ts';
import { eventually } from '../harness/eventually.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { testVault } from '../harness/test-vault.ts';

/** In this process; serve-backup.test.ts has it in its own. */
function backUps(vault: Vault, plan: BackupPlan, verify: BackupOrder['verify'] = checkBackup) {
  return () => backUpByPlan(vault, plan, { actor: system, version: '0', verify });
}

const isMade = (line: string) => line.includes('backup created');

test('a backup is created at the start and whenever one is due, and recorded as the system', async (t) => {
  const { vault, world, log } = await testVault(t);
  const directory = tempDir(t);
  const stop = new AbortController();
  const job = runBackupScheduler(vault, backUps(vault, { directory, every: day, keep: 7 }), stop.signal);
  await world.sleeping(1);
  assert.equal(readdirSync(directory).length, 1);
  world.advance(day);
  await eventually('the next one', () => log.lines.filter(isMade).length === 2 || undefined);
  assert.equal(readdirSync(directory).length, 2);
  stop.abort();
  await job;
  const events = await vault.db.reader
    .selectFrom('audit_events')
    .selectAll()
    .where('action', '=', 'backup.create')
    .execute();
  assert.deepEqual(
    events.map(({ actor }) => actor),
    ['system', 'system'],
  );
});

test('a failed backup is logged, sets isFailing and is retried after ten minutes', async (t) => {
  const { vault, world, log } = await testVault(t);
  const directory = join(tempDir(t), 'mount');
  const stop = new AbortController();
  const job = runBackupScheduler(vault, backUps(vault, { directory, every: day, keep: 7 }), stop.signal);
  await world.sleeping(1);
  assert.equal(vault.backupHealth.isFailing, true);
  assert.ok(
    log.lines.some(
      (line) => line.includes('backup failed') && line.includes('cannot read the backup directory'),
    ),
  );
  mkdirSync(directory);
  world.advance(9 * minute);
  assert.equal(readdirSync(directory).length, 0);
  world.advance(minute);
  await eventually('the second attempt', () => log.lines.some(isMade) || undefined);
  await world.sleeping(1);
  assert.equal(vault.backupHealth.isFailing, false);
  assert.equal(readdirSync(directory).length, 1);
  stop.abort();
  await job;
});

test('no backup is written to the directory while other users can write to it', async (t) => {
  const { vault, world, log } = await testVault(t);
  const directory = tempDir(t);
  const stop = new AbortController();
  const plan = { directory, every: day, keep: 7 };
  const job = runBackupScheduler(vault, backUps(vault, plan), stop.signal);
  await world.sleeping(1);
  const first = readdirSync(directory);
  assert.equal(first.length, 1);
  chmodSync(directory, 0o777);
  world.advance(day);
  await eventually('the failure', () => vault.backupHealth.isFailing || undefined);
  assert.ok(
    log.lines.some((line) => line.includes('backup failed') && line.includes('is writable by other users')),
  );
  assert.deepEqual(readdirSync(directory), first);
  chmodSync(directory, 0o700);
  await world.sleeping(1);
  world.advance(10 * minute);
  await eventually('the second backup', () => log.lines.filter(isMade).length === 2 || undefined);
  stop.abort();
  await job;
});

test('a backup that fails verification is not kept in the directory', async (t) => {
  const { vault, world } = await testVault(t);
  const directory = tempDir(t);
  const stop = new AbortController();
  const verify = async () => {
    throw new Error('damaged');
  };
  const job = runBackupScheduler(
    vault,
    backUps(vault, { directory, every: day, keep: 7 }, verify),
    stop.signal,
  );
  await world.sleeping(1);
  assert.deepEqual(readdirSync(directory), []);
  assert.equal(vault.backupHealth.isFailing, true);
  stop.abort();
  await job;
});

test('a backup with far fewer certificates is set aside and reported as failed until it is accepted', async (t) => {
  const { vault, world, log } = await testVault(t);
  const directory = tempDir(t);
  const stop = new AbortController();
  const plan = { directory, every: day, keep: 1 };
  await addCertificates(vault, 'a', 'b', 'c');
  const job = runBackupScheduler(vault, backUps(vault, plan), stop.signal);
  await world.sleeping(1);
  assert.equal(vault.backupHealth.isFailing, false);
  await vault.db.write((writer) => writer.deleteFrom('certificates').execute());
  world.advance(day);
  const isSetAside = (line: string) => line.includes('set it aside and kept all backups');
  await eventually('the log', () => log.lines.some(isSetAside) || undefined);
  await world.sleeping(1);
  const { details } = await readiness(vault);
  assert.equal(details.backup.state, 'failed');
  const [finding] = await backupFindings(vault, plan);
  assert.equal(finding?.status, 'failed');
  assert.match(finding?.message ?? '', /has 0 certificates and 3 versions, the previous one 3 and 3$/);
  const aside = readdirSync(directory).find((name) => name.includes('.smaller.')) ?? '';
  const accepted = aside.replace('.smaller', '');
  assert.ok(finding?.hint?.endsWith(`mv ${join(directory, aside)} ${join(directory, accepted)}`));
  renameSync(join(directory, aside), join(directory, accepted));
  world.advance(minute);
  await eventually('it is accepted', () => !vault.backupHealth.isFailing || undefined);
  assert.equal((await backupFindings(vault, plan))[0]?.status, 'ok');
  stop.abort();
  await job;
});

test('a clone that writes to the same directory causes a warning in the log and from the doctor', async (t) => {
  const { vault, world, log } = await testVault(t);
  const directory = tempDir(t);
  const plan = { directory, every: day, keep: 1 };
  const makeOne = async () => {
    const stop = new AbortController();
    const job = runBackupScheduler(vault, backUps(vault, plan), stop.signal);
    await world.sleeping(1);
    stop.abort();
    await job;
  };
  const mine = await ensureVaultIdentity(vault);
  // As the other vault: the same key, another id, a while after this one got its own.
  world.advance(minute);
  await vault.db.write((writer) => ensureIdentity(writer, world));
  await makeOne();
  await vault.db.write(async (writer) => {
    await putSetting(writer, 'vault-id', mine.id);
    await putSetting(writer, 'vault-id-since', mine.since);
  });
  world.advance(minute);
  await makeOne();
  const warning = 'another vault with the same master key writes backups to the same directory';
  assert.equal(log.lines.filter((line) => line.includes(warning)).length, 1);
  const [finding] = await backupFindings(vault, plan);
  assert.equal(finding?.status, 'warning');
  assert.ok(finding?.message.startsWith(warning));
});
