/** The age of the last backup, for whoever watches over it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour } from '../../../src/base/duration.ts';
import { putSetting } from '../../../src/db/tables/settings.ts';
import { backupAge, lastBackupAt } from '../../../src/domain/backup/backup-age.ts';
import { testVault } from '../../harness/test-vault.ts';

test('a vault without a backup has no age to tell', async (t) => {
  const { vault } = await testVault(t);
  assert.equal(await lastBackupAt(vault.db.reader), undefined);
  assert.equal(await backupAge(vault), undefined);
});

test('the age grows with the clock, and is never below zero where that was set back', async (t) => {
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
