/**
 * A rotation that is killed at any moment: whatever was reached, the vault opens all it has, and the next run goes on.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readMasterKey } from '../../../src/crypto/secrets/master-key-file.ts';
import { listMasterKeys } from '../../../src/db/tables/master-keys.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { rotateMasterKey } from '../../../src/domain/master-key/master-key-rotation.ts';
import { openEverything, sealEverything } from '../../harness/database/sealed-everything.ts';
import { copyDatabase, databaseOf } from '../../harness/database/tested-engine.ts';
import { fromSource } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

const killer = fileURLToPath(new URL('../../harness/processes/kill-at.ts', import.meta.url));

test('a rotation that is killed before any of its steps is resumed, and loses nothing', async (t) => {
  const origin = join(tempDir(t), 'data');
  const world = new TestWorld();
  const made = await testVault(t, { dataDir: origin, world });
  await sealEverything(made.vault);
  const { secrets } = await openEverything(made.vault);
  await made.close();
  const [node, main = ''] = fromSource;
  const reached = new Set<string>();
  let step = 1;
  for (; ; step += 1) {
    const dataDir = join(tempDir(t), 'data');
    cpSync(origin, dataDir, { recursive: true });
    await copyDatabase(origin, dataDir);
    const args = ['--import', killer, main, 'master-key', 'rotate', '--data-dir', dataDir];
    const kill = { KILL_AT: String(step), KILL_UNDER: dataDir, KILL_COMMITS: '1' };
    const env = { ...process.env, ...kill, CERTVAULT_DATABASE: databaseOf(dataDir) };
    const { signal, status, stderr } = spawnSync(node, args, { env, encoding: 'utf8' });
    assert.ok(signal === 'SIGKILL' || status === 0, `step ${step}: ${stderr}`);
    const { vault, close } = await testVault(t, { dataDir, world });
    const found = await openEverything(vault);
    assert.deepEqual(found.secrets, secrets, `step ${step}`);
    const rows = await listMasterKeys(vault.db.reader);
    reached.add(`${rows.map(({ state }) => state)} ${found.keys.length}`);
    const { to } = await rotateMasterKey(vault, { actor: localCli, report: () => undefined });
    const after = await openEverything(vault);
    assert.deepEqual([after.secrets, after.keys], [secrets, [to]], `step ${step}`);
    assert.equal(readMasterKey(join(dataDir, 'master.key'))?.name, to, `step ${step}`);
    assert.equal(readdirSync(dataDir).includes('master.key.next'), false, `step ${step}`);
    await close();
    if (signal === null) break;
  }
  assert(step > 12, `only ${step} steps were seen`);
  for (const state of ['current 1', 'previous,current 1', 'previous,current 2', 'retired,current 1'])
    assert(reached.has(state), `${state} was never reached: ${[...reached]}`);
});
