/** Key files that cannot be put in order: nothing depends on their names. */
import assert from 'node:assert/strict';
import { readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { certificateNames } from '../../harness/database/backup-fixtures.ts';
import { makeCertificate } from '../../harness/http/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

test('a vault opens even if its key file cannot be renamed back to master.key', async (t) => {
  const { vault, dataDir, world, close } = await testVault(t);
  await makeCertificate(vault, 'web');
  await close();
  const path = join(dataDir, 'master.key');
  renameSync(path, `${path}.next`);
  // Another key under a name that is not its own: what is to be moved out of the way is not where it should be.
  writeFileSync(`${path}.0000000000000000`, Buffer.alloc(32, 1), { mode: 0o600 });
  const { vault: again } = await testVault(t, { dataDir, world });
  assert.deepEqual(await certificateNames(again), ['web']);
  assert.deepEqual(
    readdirSync(dataDir).filter((name) => name.startsWith('master.key')),
    ['master.key.0000000000000000', 'master.key.next'],
  );
});
