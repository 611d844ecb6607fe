/** The last use of keys: written behind, at most once a minute per key, and not lost when it cannot be written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minute, second } from '../../../src/base/duration.ts';
import { pageOfApiKeys } from '../../../src/domain/access/api-key-views.ts';
import { createApiKey } from '../../../src/domain/access/api-keys.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createApiKeyInput, parseInput } from '../../../src/domain/inputs.ts';
import { refuse } from '../../harness/database/outside-database.ts';
import { testVault } from '../../harness/test-vault.ts';

async function vaultWithKeys(t: Parameters<typeof testVault>[0]) {
  const opened = await testVault(t);
  const { vault } = opened;
  for (const name of ['one', 'other']) {
    const input = { name, scopes: ['certificates:read'], certificates: ['*'] };
    await createApiKey(vault, localCli, parseInput(createApiKeyInput, input));
  }
  const uses = async () =>
    (await pageOfApiKeys(vault, { limit: 10 })).map(({ last_used_at, last_used_ip }) => [
      last_used_at,
      last_used_ip,
    ]);
  return { ...opened, uses };
}

test('write stores the noted uses of all keys in one transaction', async (t) => {
  const { vault, uses } = await vaultWithKeys(t);
  vault.keyUse.note(1, '192.0.2.1');
  vault.keyUse.note(2, undefined);
  assert.deepEqual(await uses(), [
    [null, null],
    [null, null],
  ]);
  const write = t.mock.method(vault.db, 'write');
  await vault.keyUse.write();
  assert.equal(write.mock.callCount(), 1);
  assert.deepEqual(await uses(), [
    ['2026-11-21T12:00:00Z', '192.0.2.1'],
    ['2026-11-21T12:00:00Z', null],
  ]);
});

test('a key is noted at most once a minute, and nothing is written if nothing was noted', async (t) => {
  const { vault, world, uses } = await vaultWithKeys(t);
  vault.keyUse.note(1, '192.0.2.1');
  await vault.keyUse.write();
  const write = t.mock.method(vault.db, 'write');
  world.advance(59 * second);
  vault.keyUse.note(1, '192.0.2.2');
  await vault.keyUse.write();
  assert.equal(write.mock.callCount(), 0);
  world.advance(second);
  vault.keyUse.note(1, '192.0.2.3');
  await vault.keyUse.write();
  assert.deepEqual((await uses())[0], ['2026-11-21T12:01:00Z', '192.0.2.3']);
});

test('a key use is still noted after the clock is set back', async (t) => {
  const { vault, world, uses } = await vaultWithKeys(t);
  vault.keyUse.note(1, '192.0.2.1');
  world.advance(-5 * minute);
  vault.keyUse.note(1, '192.0.2.2');
  await vault.keyUse.write();
  assert.deepEqual((await uses())[0], ['2026-11-21T11:55:00Z', '192.0.2.2']);
});

test('a use that could not be written is retried by the next write, unless a newer use was noted', async (t) => {
  const { vault, world, dataDir, uses } = await vaultWithKeys(t);
  const full = refuse(dataDir, 'update', 'api_keys', { message: 'no room' });
  vault.keyUse.note(1, '192.0.2.1');
  vault.keyUse.note(2, '192.0.2.2');
  await assert.rejects(vault.keyUse.write(), /no room/);
  full.allow();
  world.advance(minute);
  vault.keyUse.note(2, '192.0.2.3');
  await vault.keyUse.write();
  assert.deepEqual(await uses(), [
    ['2026-11-21T12:00:00Z', '192.0.2.1'],
    ['2026-11-21T12:01:00Z', '192.0.2.3'],
  ]);
});

test('a noted use of a deleted key does not prevent the other uses from being written', async (t) => {
  const { vault, uses } = await vaultWithKeys(t);
  vault.keyUse.note(99, '192.0.2.1');
  vault.keyUse.note(1, '192.0.2.1');
  await vault.keyUse.write();
  assert.equal((await uses())[0]?.[1], '192.0.2.1');
});
