/** Disk space: what little of it means, and that everyone is told long before anything stops. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { readiness } from '../../../src/domain/doctor/readiness.ts';
import { DiskSpace, spaceState } from '../../../src/domain/health/disk-space.ts';
import { notifyDiskSpace } from '../../../src/domain/notifications/notification-disk.ts';
import { addWebhook, deliveriesOf } from '../../harness/notifications/fixtures.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { settingsFor, testVault } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

/** More than any disk of today. */
const everything = 9e17;

test('space is low below the setting, and critical below a quarter of it', () => {
  const states = [1000, 999, 250, 249, 0].map((free) => spaceState(free, 1000));
  assert.deepEqual(states, ['ok', 'low', 'low', 'critical', 'critical']);
  assert.equal(spaceState(0, 0), 'ok', 'nobody wants to know');
});

test('free space is read from the file system, and a missing directory counts as ok', async (t) => {
  const world = new TestWorld();
  const here = new DiskSpace(`${tempDir(t)}/vault.db`, world, everything);
  assert((await here.free()) > 0);
  assert.equal(here.state(), 'critical');
  const nowhere = new DiskSpace('/nowhere/at/all/vault.db', world, everything);
  await nowhere.begin();
  assert.equal(nowhere.state(), 'ok');
});

test('disk space appears in the readiness details, and notifications are sent on low, critical and recovery', async (t) => {
  const dataDir = tempDir(t);
  const audit = { ...settingsFor(dataDir).audit, lowSpace: everything };
  const { vault, world } = await testVault(t, { dataDir, settings: { audit } });
  vault.renewalHeartbeat.beat();
  const ready = await readiness(vault);
  assert.deepEqual([ready.status, ready.details.disk], ['ready', { state: 'critical' }]);
  await addWebhook(vault, 'http://127.0.0.1:1/', { events: ['disk.low'] });
  const told = async () => {
    const rows = await vault.db.reader.selectFrom('notifications').select(['event', 'data']).execute();
    return rows.map(({ event, data }) => `${event} ${(JSON.parse(data) as { state: string }).state}`);
  };
  const free = t.mock.method(vault.disk, 'free', async () => everything / 2);
  await notifyDiskSpace(vault);
  await notifyDiskSpace(vault);
  assert.deepEqual(await told(), ['disk.low low']);
  free.mock.mockImplementation(async () => 1);
  await notifyDiskSpace(vault);
  world.advance(2 * day);
  await notifyDiskSpace(vault);
  assert.deepEqual((await told()).slice(1), ['disk.low critical', 'disk.low critical']);
  free.mock.mockImplementation(async () => 2 * everything);
  await notifyDiskSpace(vault);
  await notifyDiskSpace(vault);
  assert.deepEqual((await told()).slice(3), ['disk.recovered ok']);
  assert.equal((await deliveriesOf(vault)).length, 4);
});
