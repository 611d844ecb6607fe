/** The scheduler of backups: makes what is due, goes on after failures, and lets readiness tell of them. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { day, minute } from '../../src/base/duration.ts';
import type { MasterKey } from '../../src/crypto/master-key.ts';
import { checkBackup } from '../../src/domain/backup-file.ts';
import { runBackupScheduler } from '../../src/jobs/backup-scheduler.ts';
import { eventually } from '../harness/acme-vault.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { testVault } from '../harness/test-vault.ts';

const isMade = (line: string) => line.includes('a backup was made');

test('a backup is made at the start and whenever one is due, recorded as the vault itself', async (t) => {
  const { vault, world, log } = await testVault(t);
  const directory = tempDir(t);
  const stop = new AbortController();
  const verify = (draft: string, masterKey: MasterKey) => checkBackup(draft, masterKey);
  const job = runBackupScheduler(
    vault,
    { directory, every: day, keep: 7 },
    { version: '0', verify },
    stop.signal,
  );
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

test('a failure is logged, shown, and tried again after ten minutes', async (t) => {
  const { vault, world, log } = await testVault(t);
  const directory = join(tempDir(t), 'mount');
  const stop = new AbortController();
  const verify = (draft: string, masterKey: MasterKey) => checkBackup(draft, masterKey);
  const job = runBackupScheduler(
    vault,
    { directory, every: day, keep: 7 },
    { version: '0', verify },
    stop.signal,
  );
  await world.sleeping(1);
  assert.equal(vault.backupHealth.isFailing, true);
  assert.ok(log.lines.some((line) => line.includes('the backup failed') && line.includes('ENOENT')));
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

test('a backup that does not stand the check gets no name', async (t) => {
  const { vault, world } = await testVault(t);
  const directory = tempDir(t);
  const stop = new AbortController();
  const verify = async () => {
    throw new Error('damaged');
  };
  const job = runBackupScheduler(
    vault,
    { directory, every: day, keep: 7 },
    { version: '0', verify },
    stop.signal,
  );
  await world.sleeping(1);
  assert.deepEqual(readdirSync(directory), []);
  assert.equal(vault.backupHealth.isFailing, true);
  stop.abort();
  await job;
});
