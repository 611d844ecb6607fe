/** The settings about backups: off without a directory, daily and seven with one, and refused by name where wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour } from '../../../src/base/duration.ts';
import { readSettings } from '../../../src/cli/settings/settings.ts';
import { tempDir } from '../../harness/temp-dir.ts';

test('no backups are created unless a directory is set; then daily, and seven are kept', async (t) => {
  const dir = { 'data-dir': tempDir(t) };
  assert.equal((await readSettings(dir, {})).backups, undefined);
  assert.equal((await readSettings({ ...dir, 'backup-keep': '3' }, {})).backups, undefined);
  assert.deepEqual((await readSettings({ ...dir, 'backup-dir': '/b/x' }, {})).backups, {
    directory: '/b/x',
    every: day,
    keep: 7,
  });
  const environment = { VAULT_BACKUP_DIR: '/b', VAULT_BACKUP_EVERY: '6h', VAULT_BACKUP_KEEP: '28' };
  assert.deepEqual((await readSettings(dir, environment)).backups, {
    directory: '/b',
    every: 6 * hour,
    keep: 28,
  });
});

for (const [name, value, complaint] of [
  ['backup-every', '1m', /--backup-every: "1m" is not a valid interval/],
  ['backup-every', 'daily', /--backup-every: "daily" is not a valid interval/],
  ['backup-every', '31d', /--backup-every: "31d" is not a valid interval/],
  ['backup-keep', '0', /--backup-keep: "0" is not a valid number of backups/],
  ['backup-keep', '-1', /--backup-keep: "-1" is not a valid number/],
  ['backup-keep', '1.5', /--backup-keep: "1\.5" is not a valid number/],
] as const) {
  test(`--${name} ${value} is rejected, even without a directory`, async (t) => {
    await assert.rejects(readSettings({ 'data-dir': tempDir(t), [name]: value }, {}), complaint);
  });
}
