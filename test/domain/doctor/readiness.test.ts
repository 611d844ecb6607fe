/** Readiness: three checks, each of which alone makes the vault not ready; none writes anything or reveals paths. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { minute } from '../../../src/base/duration.ts';
import { Secret } from '../../../src/base/secret.ts';
import { Keyring } from '../../../src/crypto/secrets/keyring.ts';
import { MasterKey } from '../../../src/crypto/secrets/master-key.ts';
import { putSetting } from '../../../src/db/tables/settings.ts';
import { readiness } from '../../../src/domain/doctor/readiness.ts';
import { holdLock, outside } from '../../harness/database/outside-database.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';

const details = { backup: { state: 'none', age_seconds: null }, disk: { state: 'ok' } };
const ok = { database: 'ok', master_key: 'ok', renewal_engine: 'ok' };

test('a working vault is ready, and the check writes nothing', async (t) => {
  const { vault } = await testVault(t);
  vault.renewalHeartbeat.beat();
  const write = t.mock.method(vault.db, 'write');
  assert.deepEqual(await readiness(vault), { status: 'ready', checks: ok, details });
  assert.equal(write.mock.callCount(), 0);
});

test('without a heartbeat of the renewal engine the vault is not ready', async (t) => {
  const { vault, world } = await testVault(t);
  const dead = { status: 'not_ready', checks: { ...ok, renewal_engine: 'failed' }, details };
  assert.deepEqual(await readiness(vault), dead);
  vault.renewalHeartbeat.beat();
  world.advance(minute);
  assert.deepEqual(await readiness(vault), dead);
});

test('with another master key the vault is not ready', async (t) => {
  const { vault } = await testVault(t);
  vault.renewalHeartbeat.beat();
  const keyring = new Keyring(join(tempDir(t), 'master.key'), new MasterKey(new Secret(Buffer.alloc(32))));
  const answer = await readiness({ ...vault, keyring });
  assert.deepEqual(answer, { status: 'not_ready', checks: { ...ok, master_key: 'failed' }, details });
});

test('with a failing database the vault is not ready, and only the log contains the error', async (t) => {
  const { vault, dataDir, log } = await testVault(t);
  vault.renewalHeartbeat.beat();
  outside(dataDir, (db) => db.exec('alter table settings rename to gone'));
  const answer = await readiness(vault);
  assert.deepEqual(answer, {
    status: 'not_ready',
    checks: { ...ok, database: 'failed', master_key: 'failed' },
    details,
  });
  assert.equal(JSON.stringify(answer).includes(dataDir), false);
  assert.equal(
    log.lines.filter((line) => /no such table: settings|relation ..settings.. does not exist/.test(line))
      .length,
    2,
  );
});

test('while another process writes the vault stays ready', async (t) => {
  const { vault, dataDir } = await testVault(t);
  vault.renewalHeartbeat.beat();
  const other = holdLock(dataDir);
  assert.equal((await readiness(vault)).status, 'ready');
  other.release();
});

test('the details show the age of the last backup and a failing schedule, and neither affects readiness', async (t) => {
  const { vault, world } = await testVault(t);
  vault.renewalHeartbeat.beat();
  await vault.db.write((writer) => putSetting(writer, 'last-backup-at', world.now() - 90_500));
  const backup = async () => {
    const answer = await readiness(vault);
    assert.equal(answer.status, 'ready');
    return answer.details.backup;
  };
  assert.deepEqual(await backup(), { state: 'ok', age_seconds: 90 });
  vault.backupHealth.failed();
  assert.deepEqual(await backup(), { state: 'failed', age_seconds: 90 });
  vault.backupHealth.succeeded();
  assert.deepEqual(await backup(), { state: 'ok', age_seconds: 90 });
});
