/** A backup of a database that nodes share: where it is restored, none of them runs and none of them leads. */
import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { realWorld } from '../../../src/base/world.ts';
import { restore } from '../../../src/domain/backup/restore.ts';
import { takeLeadership } from '../../../src/domain/nodes/leadership.ts';
import { recordedNodes, recordNode } from '../../../src/domain/nodes/nodes.ts';
import { makeBackup } from '../../harness/database/backup-fixtures.ts';
import { ownNode, sharedNodes } from '../../harness/database/shared-nodes.ts';
import { ofFiles } from '../../harness/database/tested-engine.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';

test(
  'a restored vault contains neither the nodes nor the leases of the original vault',
  ofFiles('restores into one'),
  async (t) => {
    const { nodes } = await sharedNodes(t, 0);
    const [{ vault, id, keyFile }] = nodes;
    await recordNode(vault, ownNode(id));
    assert(await takeLeadership(vault, id));
    const file = join(tempDir(t), 'vault.backup');
    await makeBackup(vault, file, { unverified: true });
    const dataDir = tempDir(t);
    const masterKeyFile = join(dataDir, 'master.key');
    copyFileSync(keyFile, masterKeyFile);
    const none = async () => undefined;
    await restore(realWorld, {
      ...{ file, dataDir, masterKeyFile, existing: 'refuse', freshLock: none, lockOf: none },
      passphrases: async () => [],
    });
    const restored = await testVault(t, { dataDir, world: realWorld });
    assert.deepEqual(await recordedNodes(restored.vault.db.reader), []);
    assert.deepEqual(await restored.vault.db.reader.selectFrom('job_leases').selectAll().execute(), []);
  },
);
