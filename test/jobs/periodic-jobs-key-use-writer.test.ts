/** The writer of the last use of keys: every few seconds, again after a failure, and a last time when it stops. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { second } from '../../src/base/duration.ts';
import { pageOfApiKeys } from '../../src/domain/access/api-key-views.ts';
import { createApiKey } from '../../src/domain/access/api-keys.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { createApiKeyInput, parseInput } from '../../src/domain/inputs.ts';
import { runKeyUseWriter } from '../../src/jobs/periodic-jobs.ts';
import { testVault } from '../harness/test-vault.ts';

async function started(t: TestContext) {
  const opened = await testVault(t);
  const { vault } = opened;
  const input = { name: 'deploy', scopes: ['certificates:read'], certificates: ['*'] };
  await createApiKey(vault, localCli, parseInput(createApiKeyInput, input));
  const abort = new AbortController();
  const running = runKeyUseWriter(vault, abort.signal);
  const stop = async () => {
    abort.abort();
    await running;
  };
  t.after(stop);
  await opened.world.sleeping(1);
  const lastIp = async () => (await pageOfApiKeys(vault, { limit: 10 }))[0]?.last_used_ip;
  return { ...opened, stop, lastIp };
}

test('the last use of an API key is written after five seconds', async (t) => {
  const { vault, world, lastIp } = await started(t);
  vault.keyUse.note(1, '192.0.2.1');
  world.advance(5 * second - 1);
  assert.equal(await lastIp(), null);
  world.advance(1);
  await world.sleeping(1);
  assert.equal(await lastIp(), '192.0.2.1');
});

test('a failed write is logged and retried after five seconds', async (t) => {
  const { vault, world, log, lastIp } = await started(t);
  const write = t.mock.method(vault.db, 'write', () => Promise.reject(new Error('disk full')));
  vault.keyUse.note(1, '192.0.2.1');
  world.advance(5 * second);
  await world.sleeping(1);
  assert(log.lines.some((line) => line.includes('disk full') && line.includes('retrying')));
  write.mock.restore();
  world.advance(5 * second);
  await world.sleeping(1);
  assert.equal(await lastIp(), '192.0.2.1');
});

test('pending uses are written when the writer is stopped', async (t) => {
  const { vault, stop, lastIp } = await started(t);
  vault.keyUse.note(1, '192.0.2.1');
  await stop();
  assert.equal(await lastIp(), '192.0.2.1');
});
