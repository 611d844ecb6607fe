/** The age of the last backup, for whoever watches over it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour } from '../../../src/base/duration.ts';
import { putSetting } from '../../../src/db/tables/settings.ts';
import { backupAge, lastBackupAt } from '../../../src/domain/backup/backup-age.ts';
import { testVault } from '../../harness/test-vault.ts';

test('backupAge returns undefined for a vault without a backup', async (t) => {
  const { vault } = await testVault(t);
  assert.equal(await lastBackupAt(vault.db.reader), undefined);
  assert.equal(await backupAge(vault), undefined);
});

test('backupAge grows with the clock and is 0 when the last backup is in the future', async (t) => {
  const { vault, world } = await testVault(t);
  const at = world.now();
  await vault.db.write((writer) => putSetting(writer, 'last-backup-at', at));
  assert.equal(await backupAge(vault), 0);
  world.advance(5 * hour);
  assert.equal(await backupAge(vault), 5 * hour);
  assert.equal(await lastBackupAt(vault.db.reader), at);
  await vault.db.write((writer) => putSetting(writer, 'last-backup-at', world.now() + hour));
  assert.equal(await backupAge(vault), 0);
});
