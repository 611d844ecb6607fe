/** Tests that no PostgreSQL cluster outlives the test process that started it, however that ends. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { tempDir } from '../harness/temp-dir.ts';
import { needsPatroni } from './patroni-member.ts';

/** Starts a cluster, pauses its primary and waits to be killed. */
const holder = `
  import { startCluster } from ${JSON.stringify(join(import.meta.dirname, './patroni-cluster.ts'))};
  const cluster = await startCluster({ after() {} });
  await cluster.pausePrimary();
  console.log(JSON.stringify(cluster.dataFolders));
  setInterval(() => {}, 1000);
`;

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  test(`a cluster leaves no data after its test process gets ${signal}`, needsPatroni(), async (t) => {
    const scratch = tempDir(t);
    // The servers may be another user.
    chmodSync(scratch, 0o755);
    const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', holder], {
      env: { ...process.env, TMPDIR: scratch },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    const [line] = await once(createInterface(child.stdout), 'line');
    const folders = JSON.parse(String(line)) as string[];
    assert.deepEqual(folders.map(existsSync), [true, true]);
    child.kill(signal);
    while (folders.some(existsSync)) await sleep(10);
  });
}
