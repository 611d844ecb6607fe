/** Owners of leases: which are dead for certain, and that their leases end early while all others expire. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { endDeadLeases, LeaseOwners } from '../../../src/domain/nodes/lease-owners.ts';
import { claimDelivery } from '../../../src/domain/notifications/notification-claim.ts';
import { claimRenewal, leaseDuration } from '../../../src/domain/renewals/renewal-claim.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { makeCertificate, silentIssuer } from '../../harness/issuance/renewal-fixtures.ts';
import { addWebhook, failRenewal } from '../../harness/notifications/fixtures.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

const deadLock = '00112233445566aa';
const dead = `worker-1@${deadLock}`;

/** A lock as kill -9 leaves it. */
function leaveLock(dataDir: string): void {
  writeFileSync(join(dataDir, `vault.lock-${deadLock}`), '', { mode: 0o600 });
}

/** The same vault in a process that has died: its claims bear an abandoned lock. */
function deadProcess(vault: Vault, dataDir: string): Vault {
  leaveLock(dataDir);
  const owners = new LeaseOwners(dataDir, vault.world);
  owners.named = (worker) => `${worker}@${deadLock}`;
  return { ...vault, owners };
}

async function renewingVault(t: Parameters<typeof testVault>[0]) {
  const opened = await testVault(t);
  await silentIssuer(opened.vault, 'ca');
  await makeCertificate(opened.vault, 'web', { issuer: 'ca' });
  return opened;
}

test('endDeadLeases ends only the lease of an owner with an abandoned lock', async (t) => {
  const { vault, world, dataDir } = await renewingVault(t);
  const peer = new LeaseOwners(dataDir, world);
  const lease_expires_at = world.now() + leaseDuration;
  const ofOwner = async (lease_owner: string) => {
    leaveLock(dataDir);
    const changes = { status: 'running', lease_owner, lease_expires_at } as const;
    await vault.db.write((writer) => writer.updateTable('renewals').set(changes).execute());
    const ended = await endDeadLeases(vault);
    const row = await vault.db.reader.selectFrom('renewals').selectAll().executeTakeFirstOrThrow();
    assert.equal(row.lease_owner, lease_owner);
    assert.equal(row.lease_expires_at, ended === 1 ? world.now() : lease_expires_at, lease_owner);
    assert(!existsSync(join(dataDir, `vault.lock-${deadLock}`)));
    return ended;
  };
  for (const owner of [
    `${vault.owners.named('worker-1')}/1/1`,
    `${peer.named('cli')}/1/1`,
    // As version 0.1.0 names owners, and as no version does.
    'worker-0011223344556677/1/1',
    'cli/1/1',
    '',
    `@${deadLock.slice(1)}/1/1`,
    `@${deadLock}0/1/1`,
    `@../vault.lock-${deadLock}/1/1`,
    // Its process removed the file when it stopped, or a power failure did.
    'worker-1@ffffffffffffffff/1/1',
  ]) {
    assert.equal(await ofOwner(owner), 0, owner);
  }
  assert.equal(await ofOwner(`${dead}/1/1`), 1);
  peer.release();
});

test('a process that takes its lock just after a check found it abandoned keeps its claim', async (t) => {
  const { vault, world, dataDir } = await renewingVault(t);
  const slow = new LeaseOwners(dataDir, world);
  const looking = new LeaseOwners(dataDir, world);
  const [, lock = ''] = slow.named('worker-1').split('@');
  let looks = 0;
  looking.abandoned = () => {
    looks += 1;
    // The first look came between the file and its lock.
    return looks === 1 ? [lock] : vault.owners.abandoned();
  };
  assert(await claimRenewal({ ...vault, owners: slow }, 'worker-1'));
  assert.equal(await endDeadLeases({ ...vault, owners: looking }), 0);
  assert.equal(looks, 2);
  assert.equal(await claimRenewal(vault, 'worker-2'), undefined);
  assert(existsSync(join(dataDir, `vault.lock-${lock}`)));
  slow.release();
});

test('LeaseOwners creates its lock file with the first owner name and reuses it for later names', (t) => {
  const directory = tempDir(t);
  const owners = new LeaseOwners(directory, new TestWorld());
  assert.deepEqual(readdirSync(directory), []);
  const [, lock] = owners.named('one').split('@');
  assert.deepEqual(readdirSync(directory), [`vault.lock-${lock}`]);
  assert.equal(owners.named('two'), `two@${lock}`);
  owners.release();
  assert.deepEqual(readdirSync(directory), []);
});

test('owner names have no lock suffix when the lock file cannot be created', (t) => {
  const owners = new LeaseOwners(join(tempDir(t), 'missing'), new TestWorld());
  assert.equal(owners.named('worker-1'), 'worker-1');
  owners.release();
});

test('the renewal of a dead process is claimed immediately, and its claims are counted', async (t) => {
  const { vault, world, dataDir } = await renewingVault(t);
  const left = await claimRenewal(deadProcess(vault, dataDir), 'worker-1');
  assert.equal(left?.owner, `${dead}/1/1`);
  assert.equal(await claimRenewal(vault, 'worker-2'), undefined);
  assert.equal(await endDeadLeases(vault), 1);
  assert(!existsSync(join(dataDir, `vault.lock-${deadLock}`)));
  const next = await claimRenewal(vault, 'worker-2');
  assert.deepEqual([next?.renewal.id, next?.renewal.claims], [left.renewal.id, 2]);
  assert.equal(next?.renewal.lease_expires_at, world.now() + leaseDuration);
  assert.equal(await endDeadLeases(vault), 0);
});

test('leases of this process and of version 0.1.0 are left to expire', async (t) => {
  const { vault, world } = await renewingVault(t);
  const old = Object.assign(new LeaseOwners('/', world), { named: (worker: string) => worker });
  for (const owner of [vault, { ...vault, owners: old }]) {
    assert(await claimRenewal(owner, 'worker-1'));
    assert.equal(await endDeadLeases(vault), 0);
    assert.equal(await claimRenewal(vault, 'worker-2'), undefined);
    world.advance(leaseDuration);
  }
});

test('a notification that a dead process was sending is claimed again immediately', async (t) => {
  const { vault, dataDir } = await testVault(t);
  await addWebhook(vault, 'https://receiver.example.test/');
  await makeCertificate(vault, 'web');
  await failRenewal(vault, 'web', 'no');
  const left = await claimDelivery(deadProcess(vault, dataDir), 'notifier-1', []);
  assert(left);
  assert.equal(await claimDelivery(vault, 'notifier-2', []), undefined);
  assert.equal(await endDeadLeases(vault), 1);
  const next = await claimDelivery(vault, 'notifier-2', []);
  assert.deepEqual([next?.deliveries[0]?.id, next?.deliveries[0]?.attempts], [left.deliveries[0]?.id, 2]);
});
